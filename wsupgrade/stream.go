package wsupgrade

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// streamConn is an HTTP/2 stream as a connection. It can't be half-closed by its
// server: the stream ends when the handler returns.
type streamConn struct {
	w      http.ResponseWriter
	rc     *http.ResponseController
	in     *http.Request
	t      *Tunnel // that takes the panics of w's deadlines, nil before there is one
	ending atomic.Bool

	lastMu sync.Mutex    // held while the last deadlines are set
	until  time.Time     // of endWithin
	silent time.Duration // the same

	mu      sync.Mutex // guards what follows; it is not held while w is used, which may take long
	writing int        // calls of Write that use w
	setting int        // calls that set a deadline of w
	unused  sync.Cond  // there is one less of them
	closed  bool       // the handler returns: w must not be touched any more
}

// newStreamConn takes the server's deadlines off the stream: they are not the
// tunnel's.
func newStreamConn(w http.ResponseWriter, in *http.Request) *streamConn {
	c := &streamConn{w: w, rc: http.NewResponseController(w), in: in}
	c.unused.L = &c.mu
	_ = c.SetDeadline(time.Time{})
	return c
}

// Read returns io.EOF at the end of the client's half of the stream, and when the
// time of endWithin is over.
func (c *streamConn) Read(p []byte) (int, error) {
	if c.ending.Load() {
		c.setLast()
	}
	n, err := c.in.Body.Read(p)
	if err != nil && c.ending.Load() && errors.Is(err, os.ErrDeadlineExceeded) {
		err = io.EOF
	}
	return n, err
}

// Write sends p at once.
func (c *streamConn) Write(p []byte) (int, error) {
	if !c.enter(&c.writing) {
		return 0, net.ErrClosed
	}
	defer c.leave(&c.writing)
	n, err := c.w.Write(p)
	if err == nil {
		err = c.flush()
	}
	return n, err
}

func (c *streamConn) flush() error { return c.rc.Flush() }

// endWithin ends the client's half after all that time, or when the client was silent for
// so long. Only an earlier end can follow.
func (c *streamConn) endWithin(all, silent time.Duration) {
	c.lastMu.Lock()
	if until := time.Now().Add(all); c.until.IsZero() || until.Before(c.until) {
		c.until, c.silent = until, silent
	}
	c.ending.Store(true)
	c.lastMu.Unlock()
	c.setLast()
}

// setLast sets the deadline of the next read, or of the one that waits.
func (c *streamConn) setLast() {
	c.lastMu.Lock()
	defer c.lastMu.Unlock()
	last := time.Now().Add(c.silent)
	if c.until.Before(last) {
		last = c.until
	}
	_ = c.deadline(c.rc.SetReadDeadline, last)
}

// enter counts a call that uses w, and reports whether w may still be used.
func (c *streamConn) enter(calls *int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	*calls++
	return true
}

// leave ends what enter has begun.
func (c *streamConn) leave(calls *int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*calls--
	c.unused.Broadcast()
}

// Close ends what is written. The stream ends with the handler, which must not return
// before. A write that waits is ended with a reset of the stream, which net/http can't send
// before the frame that its connection is sending: nothing else bounds Close. Other calls fail meanwhile.
func (c *streamConn) Close() error {
	c.mu.Lock()
	c.closed = true
	writing := c.writing > 0
	c.mu.Unlock()
	if writing {
		_ = c.set(c.rc.SetWriteDeadline, past)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.writing+c.setting > 0 {
		c.unused.Wait()
	}
	return nil
}

func (c *streamConn) deadline(set func(time.Time) error, t time.Time) error {
	if !c.enter(&c.setting) {
		return net.ErrClosed
	}
	defer c.leave(&c.setting)
	return c.set(set, t)
}

// set calls a method of w, or of a filter's around it, which may be on a timer's goroutine.
func (c *streamConn) set(deadline func(time.Time) error, at time.Time) (err error) {
	defer c.t.catch(&err)
	return deadline(at)
}

func (c *streamConn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

func (c *streamConn) SetReadDeadline(t time.Time) error {
	if c.ending.Load() && t != past {
		return nil // endWithin has set a last one
	}
	return c.deadline(c.rc.SetReadDeadline, t)
}

func (c *streamConn) SetWriteDeadline(t time.Time) error {
	return c.deadline(c.rc.SetWriteDeadline, t)
}

func (c *streamConn) LocalAddr() net.Addr {
	addr, _ := c.in.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return addr
}

// RemoteAddr returns nil if the server has not told one.
func (c *streamConn) RemoteAddr() net.Addr {
	addr, err := net.ResolveTCPAddr("tcp", c.in.RemoteAddr)
	if err != nil {
		return nil
	}
	return addr
}
