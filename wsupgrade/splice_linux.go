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
// that can go past this process, or if only read can tell: where urgent data of TCP stands
// next, splice(2) says EAGAIN for ever.
func (h *pollHalf) splice(l *loop, atMost int) (n int, moved bool, err error) {
	d := h.direction()
	d.mu.Lock()
	defer d.unlock()
	c, ok := d.codec.(*passing)
	if !ok || h.copies || l.owner.refused.Load() || c.question != nil || d.shut || h.lost || d.t.closing.Load() != nil {
		return 0, false, nil
	}
	if c.large && c.boundary.here() {
		if err := h.foresee(l, c); err != nil {
			return 0, true, err
		}
	}
	if c.left < bulk {
		return 0, false, nil
	}
	if l.pipe == nil {
		if l.pipe, err = newPipe(); err != nil {
			return 0, false, nil // no descriptor is left: a copy does it as well
		}
	}
	n, err = l.owner.splice(h.src().fd, l.pipe.w, int(min(c.left, uint64(atMost))))
	switch {
	case err == syscall.EAGAIN:
		return 0, false, nil
	case err == syscall.EINVAL: // a kind of socket that can't
		h.copies = true
		return 0, false, nil
	case refuses(err):
		l.owner.refused.Store(true)
		return 0, false, nil
	case err != nil:
		return 0, true, err
	case n == 0:
		return 0, true, io.EOF
	}
	d.last.Store(int64(time.Since(d.t.Start)))
	c.left -= uint64(n)
	d.delivered.Add(int64(n))
	err = h.dst().fromPipe(l, n)
	d.torn = d.torn || err != nil
	return n, true, err
}

// foresee looks at the head of a frame that follows a large one. If it is large as well,
// the head goes with its payload: a segment of its own would cost as much as all of it.
func (h *pollHalf) foresee(l *loop, c *passing) error {
	n, err := h.src().peek(l.buf[:maxHeadLen])
	if err != nil || n < 2 || n < headLen(l.buf[:2]) {
		return err
	}
	if head := parseHead(l.buf[:headLen(l.buf[:2])]); head.length >= bulk && head.length>>62 == 0 {
		c.begin(head)
		c.left += uint64(headLen(l.buf[:2]))
	}
	return nil
}

// spliceNow moves what is there, at most n bytes.
func spliceNow(from, to, n int) (int, error) {
	for {
		moved, _, errno := syscall.RawSyscall6(syscall.SYS_SPLICE, uintptr(from), 0, uintptr(to), 0, uintptr(n), spliceMove|spliceNonblock)
		switch errno {
		case 0:
			return int(moved), nil
		case syscall.EINTR:
		default:
			return 0, errno
		}
	}
}

// fromPipe takes n bytes out of the pipe. What the socket does not take is pending.
func (c *pollConn) fromPipe(l *loop, n int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.unable()
	for n > 0 && err == nil {
		var m int
		m, err = l.owner.splice(l.pipe.r, c.fd, n)
		n -= m
	}
	switch {
	case err == syscall.EINVAL, refuses(err): // only splice(2) can't
		l.owner.refused.Store(true)
		err = nil
	case err == syscall.EAGAIN:
		err = nil
	}
	if drainErr := c.drainPipe(l, n, err == nil); drainErr != nil {
		return drainErr
	}
	return dstError(err)
}

// drainPipe reads the n bytes that are left in the pipe, and keeps them for the socket.
func (c *pollConn) drainPipe(l *loop, n int, keep bool) error {
	for n > 0 {
		m, err := syscall.Read(l.pipe.r, l.buf[:min(n, len(l.buf))])
		if err == syscall.EINTR {
			continue
		}
		if err != nil || m == 0 { // the pipe is ours alone and holds n bytes
			l.pipe.close()
			l.pipe = nil
			return io.ErrUnexpectedEOF
		}
		if n -= m; keep {
			c.hold(l.buf[:m])
		}
	}
	return nil
}

// brokenDst is the error of a dst that takes nothing more, not of src.
type brokenDst struct{ error }

func dstError(err error) error {
	if err == nil {
		return nil
	}
	return brokenDst{err}
}
