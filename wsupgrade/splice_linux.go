package wsupgrade

import (
	"io"
	"syscall"
	"time"
)

const (
	spliceMove     = 1
	spliceNonblock = 2
	setPipeSize    = 1031 // F_SETPIPE_SZ
	pipeSize       = 256 << 10
)

// pipe is the loop's, between two sockets. It is empty whenever nothing is being moved,
// so no tunnel holds one.
type pipe struct{ r, w int }

func newPipe() (*pipe, error) {
	var fds [2]int
	if err := syscall.Pipe2(fds[:], syscall.O_CLOEXEC|syscall.O_NONBLOCK); err != nil {
		return nil, err
	}
	// Where the system's limit for pipes is reached, 64 KiB have to do.
	_, _, _ = syscall.Syscall(syscall.SYS_FCNTL, uintptr(fds[1]), setPipeSize, pipeSize)
	return &pipe{fds[0], fds[1]}, nil
}

func (p *pipe) close() {
	if p != nil {
		_ = syscall.Close(p.r)
		_ = syscall.Close(p.w)
	}
}

// splice moves some of the payload that is under way. It returns false if there is none
// that nobody has to see.
func (h *pollHalf) splice(l *loop) (moved bool, err error) {
	d := h.d
	d.mu.Lock()
	defer d.unlock()
	c, ok := d.codec.(*passing)
	if !ok || c.question != nil || c.left < bulk || d.shut || h.lost || d.t.closing.Load() != nil {
		return false, nil
	}
	if l.pipe == nil {
		if l.pipe, err = newPipe(); err != nil {
			return false, nil // no descriptor is left: a copy does it as well
		}
	}
	n, err := syscall.Splice(h.src.fd, nil, l.pipe.w, nil, int(min(c.left, pipeSize)), spliceMove|spliceNonblock)
	switch {
	case err == syscall.EINTR:
		return true, nil
	case err == syscall.EINVAL:
		return false, nil // a kind of socket that can't
	case err != nil:
		return true, err
	case n == 0:
		return true, io.EOF
	}
	d.last.Store(int64(time.Since(d.t.Start)))
	c.left -= uint64(n)
	d.delivered.Add(n)
	return true, h.dst.fromPipe(l, int(n))
}

// fromPipe takes n bytes out of the pipe. What the socket does not take is pending.
func (c *pollConn) fromPipe(l *loop, n int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.unable()
	for n > 0 && err == nil {
		var m int64
		m, err = syscall.Splice(l.pipe.r, nil, c.fd, nil, n, spliceMove|spliceNonblock)
		n -= int(max(m, 0))
		if err == syscall.EINTR {
			err = nil
		}
	}
	for full := err != nil && err != syscall.EAGAIN; n > 0; {
		m, readErr := syscall.Read(l.pipe.r, l.buf[:min(n, len(l.buf))])
		if readErr == syscall.EINTR {
			continue
		}
		if readErr != nil || m == 0 { // the pipe is ours alone and holds n bytes
			l.pipe.close()
			l.pipe = nil
			return io.ErrUnexpectedEOF
		}
		if n -= m; !full {
			c.hold(l.buf[:m])
		}
	}
	if err == syscall.EAGAIN {
		return nil
	}
	return dstError(err)
}

// brokenDst is the error of a dst that takes nothing more, not of src.
type brokenDst struct{ error }

func dstError(err error) error {
	if err == nil {
		return nil
	}
	return brokenDst{err}
}
