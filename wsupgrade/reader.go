package wsupgrade

import (
	"net"
	"syscall"

	"github.com/culvert-go/culvert/internal/bufpool"
)

// reader reads one side of a tunnel for the portable engine. While it waits it holds a small buffer
// or none: most tunnels are idle.
type reader interface {
	// read returns the next bytes, which are valid until release.
	read() ([]byte, error)
	release()
}

func newReader(src net.Conn) reader {
	if isPlainSocket(src) {
		if r := newSocketReader(src.(syscall.Conn)); r != nil {
			return r
		}
	}
	return &smallReader{src: src}
}

// isPlainSocket reports whether c is a socket and nothing more: a wrapper may count or change what is read.
func isPlainSocket(c net.Conn) bool {
	switch c.(type) {
	case *net.TCPConn, *net.UnixConn:
		return true
	}
	return false
}

// smallBuffer is the size of a smallReader's own buffer. A read that fills it is followed by one
// with a buffer of the pool.
const smallBuffer = 512

// smallReader reads a connection on which a read can't wait without a buffer: TLS, or an HTTP/2
// stream.
type smallReader struct {
	src   net.Conn
	full  bool   // the last read filled its buffer
	lent  []byte // from the pool; nil but between read and release
	small [smallBuffer]byte
}

func (r *smallReader) read() ([]byte, error) {
	buf := r.small[:]
	if r.full {
		r.lent = bufpool.Get()
		buf = r.lent
	}
	n, err := r.src.Read(buf)
	r.full = n == len(buf)
	return buf[:n], err
}

func (r *smallReader) release() {
	if r.lent != nil {
		bufpool.Put(r.lent)
		r.lent = nil
	}
}
