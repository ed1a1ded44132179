//go:build unix

package wsupgrade

import (
	"io"
	"os"
	"syscall"

	"github.com/culvert-go/culvert/internal/bufpool"
)

// socketReader takes a buffer from the pool only when the socket has bytes to read.
type socketReader struct {
	raw     syscall.RawConn
	attempt func(fd uintptr) bool
	lent    []byte
	n       int
	err     error
}

// newSocketReader returns nil if the connection is closed.
func newSocketReader(src syscall.Conn) reader {
	raw, err := src.SyscallConn()
	if err != nil {
		return nil
	}
	r := &socketReader{raw: raw}
	r.attempt = r.readNow
	return r
}

func (r *socketReader) read() ([]byte, error) {
	if err := r.raw.Read(r.attempt); err != nil {
		return nil, err // closed, or past its deadline
	}
	return r.lent[:r.n], r.err
}

// readNow reads from the socket. It returns false if the socket is empty, and is called again when
// it is readable.
func (r *socketReader) readNow(fd uintptr) bool {
	r.lent = bufpool.Get()
	n, err := syscall.Read(int(fd), r.lent)
	for err == syscall.EINTR {
		n, err = syscall.Read(int(fd), r.lent)
	}
	if err == syscall.EAGAIN {
		r.release()
		return false
	}
	r.n, r.err = max(n, 0), os.NewSyscallError("read", err)
	if n == 0 && err == nil {
		r.err = io.EOF
	}
	return true
}

func (r *socketReader) release() {
	if r.lent != nil {
		bufpool.Put(r.lent)
		r.lent = nil
	}
}
