//go:build unix

package wsupgrade

import (
	"io"
	"os"
	"syscall"

	"github.com/culvert-go/culvert/internal/bufpool"
)

// socketReader takes a buffer only when the socket has something to read.
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
		return nil, err // closed, or its time is over
	}
	return r.lent[:r.n], r.err
}

// readNow returns false if the socket is empty; it is called again when it is not.
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
