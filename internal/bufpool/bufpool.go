// Package bufpool pools the buffers that bodies and tunnels are copied with.
package bufpool

import "sync"

// io.Copy uses 32 KiB too, and two of the largest TLS records (16 KiB) fit into it.
// A body that is known to be large is copied with a quarter of the system calls.
const (
	size  = 32 << 10
	large = 128 << 10
)

var (
	pool      = sync.Pool{New: func() any { return new([size]byte) }}
	largePool = sync.Pool{New: func() any { return new([large]byte) }}
)

// Get returns a buffer of 32 KiB. Its content is undefined.
func Get() []byte { return pool.Get().(*[size]byte)[:] }

// GetFor returns a buffer to copy n bytes with: one of 128 KiB if n bytes fill it,
// else one of 32 KiB. A negative n means that the length is unknown.
func GetFor(n int64) []byte {
	if n < large {
		return Get()
	}
	return largePool.Get().(*[large]byte)[:]
}

// Poison makes Put overwrite each buffer, so that a use after Put is detected. It is for tests, which must set it
// before the first Get.
var Poison bool

// Put returns b to its pool. It must have the length that Get or GetFor returned, and
// the caller must not use it afterwards. A nil b is ignored.
func Put(b []byte) {
	if Poison && b != nil {
		b[0] = 0xdb
		for n := 1; n < len(b); n *= 2 {
			copy(b[n:], b[:n])
		}
	}
	switch len(b) {
	case size:
		pool.Put((*[size]byte)(b))
	case large:
		largePool.Put((*[large]byte)(b))
	}
}
