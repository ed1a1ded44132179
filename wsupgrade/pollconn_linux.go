package wsupgrade

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/culvert-go/culvert/internal/bufpool"
	"github.com/culvert-go/culvert/internal/deadline"
	"github.com/culvert-go/culvert/internal/netloop"
)

// pollConn is one side of a tunnel on a loop: a descriptor of its own, without the runtime's
// poller. Writes never block; what the socket does not accept is pending, and the loop reads
// nothing more for it meanwhile.
type pollConn struct {
	fd   int
	pair *pollPair

	mu            sync.Mutex
	closed        bool
	aborted       bool
	wantsWritable bool          // there is an event when the socket accepts bytes again
	loop          *netloop.Loop // nil: no loop watches the socket
	registration  netloop.Registration
	fin           bool        // the sending half is to be closed once nothing is pending
	out           *outgoing   // nil: nothing is pending
	failed        error       // of a write that was pending
	timer         *time.Timer // nil: no deadline was set yet
}

// outgoing holds the bytes that the socket has not accepted.
type outgoing struct {
	pending []byte // in buffer, if it fits
	buffer  []byte // from the pool
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

// dup copies a descriptor. A program that is started does not inherit the copy.
func dup(fd int) (int, error) {
	copied, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(fd), syscall.F_DUPFD_CLOEXEC, 0)
	if errno != 0 {
		return -1, errno
	}
	return int(copied), nil
}

// watch makes l handle c's events from now on. As long as nothing is pending it does not request an
// event when c is writable: a new socket is, which would wake the loop at once.
func (c *pollConn) watch(l *netloop.Loop) (err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wantsWritable = c.out != nil
	if c.registration, err = l.Add(c.fd, c.events(), c); err == nil {
		c.loop = l
	}
	return err
}

// requestWritable requests an event when the socket accepts bytes again. There is one also if it
// does already. If the system refuses that, the pending bytes could never be sent, so the tunnel is
// aborted.
func (c *pollConn) requestWritable() {
	if c.loop == nil || c.wantsWritable {
		return
	}
	c.wantsWritable = true
	if c.loop.Modify(c.registration, c.events()) != nil {
		go c.pair.t.Abort() // on a goroutine, since it locks c.mu
	}
}

func (c *pollConn) events() uint32 {
	if c.wantsWritable {
		return watchedEvents | syscall.EPOLLOUT
	}
	return watchedEvents
}

// Handle handles events of the socket.
func (c *pollConn) Handle(l *netloop.Loop, e netloop.Event) {
	c.pair.handle(l.State().(*loop), c, e.Mask)
}

// Read reads the available bytes. The error is EAGAIN if there are none.
func (c *pollConn) Read(p []byte) (int, error) { return orEOF(readNow(c.fd, p)) }

// peek is Read that leaves the bytes in the socket.
func (c *pollConn) peek(p []byte) (int, error) { return orEOF(peekNow(c.fd, p)) }

func orEOF(n int, err error) (int, error) {
	if n == 0 && err == nil {
		return 0, io.EOF
	}
	return n, err
}

// Write accepts all of p: what the socket does not accept is pending.
func (c *pollConn) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.checkWritable(); err != nil {
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

func (c *pollConn) checkWritable() error {
	switch {
	case c.failed != nil:
		return c.failed
	case c.closed, c.aborted, c.fin:
		return net.ErrClosed
	}
	return nil
}

// write writes what the socket accepts.
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

// hold makes p pending. That is at most the bytes of one read, and a control frame or two.
func (c *pollConn) hold(p []byte) {
	if len(p) == 0 {
		return
	}
	if c.out == nil {
		buffer := bufpool.GetFor(2 * loopBuffer)
		c.out = &outgoing{buffer[:0], buffer}
		c.requestWritable()
	}
	o := c.out
	if all := len(o.pending) + len(p); cap(o.pending) < all && all <= len(o.buffer) { // the front of buffer is free again
		o.pending = o.buffer[:copy(o.buffer, o.pending)]
	}
	o.pending = append(o.pending, p...)
}

// flush writes what is pending. done reports whether nothing is pending any more.
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

// idle reports whether nothing is pending.
func (c *pollConn) idle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.out == nil
}

// writeError returns the error of a write that was pending.
func (c *pollConn) writeError() error {
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

// SetDeadline ends the tunnel at t. Reads and writes never wait, so a deadline has nothing else to
// end.
func (c *pollConn) SetDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return net.ErrClosed
	case t.IsZero():
		c.stopTimer()
	case t == deadline.Past:
		c.abort()
	case c.timer == nil:
		c.timer = time.AfterFunc(time.Until(t), c.pair.t.Abort)
	default:
		c.timer.Reset(time.Until(t))
	}
	return nil
}

func (c *pollConn) SetReadDeadline(t time.Time) error { return c.SetDeadline(t) }

// LocalAddr and RemoteAddr return nil; the Tunnel has the addresses that matter.
func (c *pollConn) LocalAddr() net.Addr  { return nil }
func (c *pollConn) RemoteAddr() net.Addr { return nil }

// SetWriteDeadline does nothing: writes never wait.
func (c *pollConn) SetWriteDeadline(time.Time) error { return nil }

// abort shuts the connection down, so that the loop reads its end. The caller holds c.mu.
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

// Close closes the descriptor, whose number may be reused after that.
func (c *pollConn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	c.closed = true
	c.stopTimer()
	c.release()
	if c.loop != nil {
		c.loop.Remove(c.registration)
	}
	return syscall.Close(c.fd)
}
