// Package bufpool lends the buffers that bodies and tunnels are copied with.
package bufpool

import "sync"

// Size is the length of a buffer in bytes. 32 KiB is what io.Copy uses, and
// the largest TLS record (16 KiB) fits twice.
const Size = 32 << 10

// Buffer is one lent buffer.
type Buffer [Size]byte

var pool = sync.Pool{New: func() any { return new(Buffer) }}

// Get returns a buffer. Its content is whatever its last user left there.
func Get() *Buffer { return pool.Get().(*Buffer) }

// Put gives b back. The caller must not touch b afterwards.
func Put(b *Buffer) { pool.Put(b) }
