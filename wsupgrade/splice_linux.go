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

// pipe is a loop's pipe between two sockets. It is empty when nothing is being moved, so no tunnel
// holds one.
type pipe struct{ r, w int }

func newPipe() (*pipe, error) {
	var fds [2]int
	if err := syscall.Pipe2(fds[:], syscall.O_CLOEXEC|syscall.O_NONBLOCK); err != nil {
		return nil, err
	}
	// Where the system's limit for pipes is reached, it has 64 KiB.
	_, _, _ = syscall.Syscall(syscall.SYS_FCNTL, uintptr(fds[1]), setPipeSize, pipeSize)
	return &pipe{fds[0], fds[1]}, nil
}

func (p *pipe) close() {
	if p != nil {
		_ = syscall.Close(p.r)
		_ = syscall.Close(p.w)
	}
}

// splice moves some of the payload that is under way. moved is false if there is none that can be
// spliced, or if only a read can find out: where urgent data of TCP is next, splice(2) returns EAGAIN
// for ever.
func (h *pollHalf) splice(l *loop, atMost int) (n int, moved bool, err error) {
	d := h.direction()
	d.mu.Lock()
	defer d.unlock()
	c, ok := d.codec.(*passthroughCodec)
	if !ok || h.noSplice || l.owner.refused.Load() || c.pending != nil || d.shut || h.dstLost || d.t.closing.Load() != nil {
		return 0, false, nil
	}
	if c.large && c.boundary.atBoundary() {
		if err := h.includeNextHeader(l, c); err != nil {
			return 0, true, err
		}
	}
	if c.remaining < bulk {
		return 0, false, nil
	}
	if l.pipe == nil {
		if l.pipe, err = newPipe(); err != nil {
			return 0, false, nil // no descriptor is available: the bytes are copied
		}
	}
	n, err = l.owner.splice(h.src().fd, l.pipe.w, int(min(c.remaining, uint64(atMost))))
	switch {
	case err == syscall.EAGAIN:
		return 0, false, nil
	case err == syscall.EINVAL: // a kind of socket that can't be spliced
		h.noSplice = true
		return 0, false, nil
	case refuses(err):
		l.owner.refused.Store(true)
		return 0, false, nil
	case err != nil:
		return 0, true, err
	case n == 0:
		return 0, true, io.EOF
	}
	now := int64(time.Since(d.t.Start))
	d.last.Store(now)
	d.lastUse.Store(now) // no Pong has as many bytes (RFC 6455 section 5.5)
	c.remaining -= uint64(n)
	d.delivered.Add(int64(n))
	err = h.dst().fromPipe(l, n)
	d.torn = d.torn || err != nil
	return n, true, err
}

// includeNextHeader peeks at the header of a frame that follows a large one. If that frame is large
// as well, the header is spliced with its payload: a segment of its own would cost as much as all
// of it.
func (h *pollHalf) includeNextHeader(l *loop, c *passthroughCodec) error {
	n, err := h.src().peek(l.buf[:maxHeaderLen])
	if err != nil || n < 2 || n < headerLen(l.buf[:2]) {
		return err
	}
	if header := parseHeader(l.buf[:headerLen(l.buf[:2])]); header.length >= bulk && header.length>>62 == 0 {
		c.startFrame(header)
		c.remaining += uint64(headerLen(l.buf[:2]))
	}
	return nil
}

// spliceNow moves the available bytes, at most n.
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

// fromPipe takes n bytes out of the pipe. What the socket does not accept is pending.
func (c *pollConn) fromPipe(l *loop, n int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.checkWritable()
	for n > 0 && err == nil {
		var m int
		m, err = l.owner.splice(l.pipe.r, c.fd, n)
		n -= m
	}
	switch {
	case err == syscall.EINVAL, refuses(err): // of splice(2), not of the socket
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

// drainPipe reads the n remaining bytes out of the pipe, and makes them pending if keep is set.
func (c *pollConn) drainPipe(l *loop, n int, keep bool) error {
	for n > 0 {
		m, err := syscall.Read(l.pipe.r, l.buf[:min(n, len(l.buf))])
		if err == syscall.EINTR {
			continue
		}
		if err != nil || m == 0 { // can't happen: the pipe is ours alone and holds n bytes
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

// brokenDst is the error of a dst that accepts nothing more, not of src.
type brokenDst struct{ error }

func dstError(err error) error {
	if err == nil {
		return nil
	}
	return brokenDst{err}
}
