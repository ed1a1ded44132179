// Package bufpool lends the buffers that bodies and tunnels are copied with.
package bufpool

import "sync"

// 32 KiB is what io.Copy uses, and the largest TLS record (16 KiB) fits twice.
// What is known to be large is copied with a quarter of the system calls.
const (
	size  = 32 << 10
	large = 128 << 10
)

var (
	pool      = sync.Pool{New: func() any { return new([size]byte) }}
	largePool = sync.Pool{New: func() any { return new([large]byte) }}
)

// Get returns a buffer of 32 KiB. Its content is whatever its last user left
// there.
func Get() []byte { return pool.Get().(*[size]byte)[:] }

// GetFor returns a buffer for n bytes that are to be copied, one of 128 KiB if
// they fill it. A negative n means that nobody knows.
func GetFor(n int64) []byte {
	if n < large {
		return Get()
	}
	return largePool.Get().(*[large]byte)[:]
}

// Poison, if true, makes Put overwrite what it is given, so that a use of a buffer behind Put is seen. It is
// for tests, and is set before the first Get.
var Poison bool

// Put gives b back, in the length that it came in. The caller must not touch it
// afterwards. A nil b is ignored.
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
