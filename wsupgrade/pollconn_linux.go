package wsupgrade

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/culvert-go/culvert/internal/bufpool"
)

// pollConn is one side of a tunnel on a loop: a descriptor of its own, without the
// runtime's poller. Writes never block; what the socket does not take is pending, and
// the loop reads nothing more for it meanwhile.
type pollConn struct {
	fd   int
	pair *pollPair

	mu      sync.Mutex
	closed  bool
	aborted bool
	asking  bool // the loop hears when the socket takes bytes again
	watched bool
	epoll   int         // what watches the socket
	fin     bool        // the sending half is to be closed, once nothing is pending
	out     *outgoing   // nil: nothing is pending
	failed  error       // of a write that was pending
	timer   *time.Timer // nil: no time was set yet
}

// outgoing is what the socket has not taken.
type outgoing struct {
	pending []byte // of buffer, if it fits
	buffer  []byte // lent
}

// copy makes c a copy of conn's descriptor.
func (c *pollConn) copy(p *pollPair, conn net.Conn) error {
	raw, err := conn.(syscall.Conn).SyscallConn()
	if err != nil {
		return err
	}
	c.pair = p
	var dupErr error
	if err := raw.Control(func(fd uintptr) {
		c.fd, dupErr = dup(int(fd))
	}); err != nil {
		return err
	}
	return os.NewSyscallError("fcntl", dupErr)
}

// dup copies a descriptor, which another program that is started does not get.
func dup(fd int) (int, error) {
	copied, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(fd), syscall.F_DUPFD_CLOEXEC, 0)
	if errno != 0 {
		return -1, errno
	}
	return int(copied), nil
}

// watch lets an epoll instance watch c from now on. As long as nothing is pending it does
// not ask when the socket takes bytes: a new one says so at once, and wakes the loop.
func (c *pollConn) watch(epoll int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.epoll, c.watched = epoll, true
	c.asking = c.out != nil
	return c.control(syscall.EPOLL_CTL_ADD)
}

// unwatch undoes watch, as closing the descriptor does where it is the socket's last.
func (c *pollConn) unwatch() {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.control(syscall.EPOLL_CTL_DEL) // fails if it was not watched
}

// ask asks when the socket takes bytes again. The loop learns of it also if that is now. Should the
// system refuse that, what is pending would be for ever: then the tunnel ends.
func (c *pollConn) ask() {
	if !c.watched || c.asking {
		return
	}
	c.asking = true
	if c.control(syscall.EPOLL_CTL_MOD) != nil {
		go c.pair.t.Abort() // which needs c.mu
	}
}

func (c *pollConn) control(operation int) error {
	event := syscall.EpollEvent{Events: always, Fd: int32(c.fd)}
	if c.asking {
		event.Events |= syscall.EPOLLOUT
	}
	return os.NewSyscallError("epoll_ctl", c.pair.t.loops.epollCtl(c.epoll, operation, c.fd, &event))
}

// Read reads what is there; EAGAIN says that nothing is.
func (c *pollConn) Read(p []byte) (int, error) { return orEOF(readNow(c.fd, p)) }

// peek is Read that leaves what is there.
func (c *pollConn) peek(p []byte) (int, error) { return orEOF(peekNow(c.fd, p)) }

func orEOF(n int, err error) (int, error) {
	if n == 0 && err == nil {
		return 0, io.EOF
	}
	return n, err
}

// Write takes all of p: what the socket does not take is pending.
func (c *pollConn) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.unable(); err != nil {
		return 0, err
	}
	n := 0
	if c.out == nil {
		var err error
		if n, err = c.write(p); err != nil {
			return n, err
		}
	}
	c.hold(p[n:])
	return len(p), nil
}

func (c *pollConn) unable() error {
	switch {
	case c.failed != nil:
		return c.failed
	case c.closed, c.aborted, c.fin:
		return net.ErrClosed
	}
	return nil
}

// write writes what the socket takes.
func (c *pollConn) write(p []byte) (n int, err error) {
	for n < len(p) {
		m, err := writeNow(c.fd, p[n:])
		switch {
		case err == syscall.EINTR:
		case err == syscall.EAGAIN:
			return n, nil
		case err != nil:
			return n, err
		default:
			n += m
		}
	}
	return n, nil
}

// hold keeps p until the socket takes it. There is at most what was read at once, and
// a control frame or two.
func (c *pollConn) hold(p []byte) {
	if len(p) == 0 {
		return
	}
	if c.out == nil {
		buffer := bufpool.GetFor(2 * loopBuffer)
		c.out = &outgoing{buffer[:0], buffer}
		c.ask()
	}
	o := c.out
	if all := len(o.pending) + len(p); cap(o.pending) < all && all <= len(o.buffer) { // its front is free again
		o.pending = o.buffer[:copy(o.buffer, o.pending)]
	}
	o.pending = append(o.pending, p...)
}

// flush writes what is pending. done says that nothing is any more.
func (c *pollConn) flush() (done bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.out == nil {
		return true
	}
	n, err := c.write(c.out.pending)
	if c.out.pending = c.out.pending[n:]; err == nil && len(c.out.pending) > 0 {
		return false
	}
	c.failed = err
	c.release()
	if c.fin && err == nil {
		_ = syscall.Shutdown(c.fd, syscall.SHUT_WR)
	}
	return true
}

func (c *pollConn) release() {
	if c.out != nil {
		bufpool.Put(c.out.buffer)
		c.out = nil
	}
}

// idle says whether nothing is pending.
func (c *pollConn) idle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.out == nil
}

// broken is the error of a write that was pending.
func (c *pollConn) broken() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failed
}

func (c *pollConn) CloseWrite() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.fin {
		return nil
	}
	if c.fin = true; c.out != nil {
		return nil // flush does it
	}
	return syscall.Shutdown(c.fd, syscall.SHUT_WR)
}

// SetDeadline ends the tunnel at t. Reads and writes never wait, so there is nothing
// else that a deadline could end.
func (c *pollConn) SetDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return net.ErrClosed
	case t.IsZero():
		c.stopTimer()
	case t == past:
		c.abort()
	case c.timer == nil:
		c.timer = time.AfterFunc(time.Until(t), c.pair.t.Abort)
	default:
		c.timer.Reset(time.Until(t))
	}
	return nil
}

func (c *pollConn) SetReadDeadline(t time.Time) error { return c.SetDeadline(t) }

// LocalAddr and RemoteAddr are not told; the Tunnel has the addresses that matter.
func (c *pollConn) LocalAddr() net.Addr  { return nil }
func (c *pollConn) RemoteAddr() net.Addr { return nil }

// SetWriteDeadline does nothing.
func (c *pollConn) SetWriteDeadline(time.Time) error { return nil }

// abort lets the loop see the end of the connection. The caller holds c.mu.
func (c *pollConn) abort() {
	if !c.aborted {
		c.aborted = true
		c.release()
		_ = syscall.Shutdown(c.fd, syscall.SHUT_RDWR)
	}
}

func (c *pollConn) isAborted() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.aborted
}

func (c *pollConn) stopTimer() {
	if c.timer != nil {
		c.timer.Stop()
	}
}

// Close closes the descriptor, after which its number may be another's.
func (c *pollConn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	c.closed = true
	c.stopTimer()
	c.release()
	return syscall.Close(c.fd)
}
