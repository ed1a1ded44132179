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

	"github.com/culvert-go/culvert/internal/deadline"
)

// streamConn is an HTTP/2 stream as a net.Conn. Its server can't half-close it: the stream ends
// when the handler returns.
type streamConn struct {
	w      http.ResponseWriter
	rc     *http.ResponseController
	in     *http.Request
	t      *Tunnel // which records panics of w's deadlines; nil before there is one
	ending atomic.Bool

	lastMu sync.Mutex    // guards until and silent, and is held while the last deadlines are set
	until  time.Time     // of endWithin
	silent time.Duration // the same

	mu      sync.Mutex // guards the following fields; not held while w is used, which may take long
	writing int        // calls of Write that use w
	setting int        // calls that set a deadline of w
	unused  sync.Cond  // signalled when one of these calls has returned
	closed  bool       // the handler returns: w must not be used any more
}

// newStreamConn returns the stream of in as a connection. It removes the server's deadlines, which
// are not the tunnel's.
func newStreamConn(w http.ResponseWriter, in *http.Request) *streamConn {
	c := &streamConn{w: w, rc: http.NewResponseController(w), in: in}
	c.unused.L = &c.mu
	_ = c.SetDeadline(time.Time{})
	return c
}

// Read reads from the client. It returns io.EOF at the end of the client's half of the stream, and
// when the time of endWithin is over.
func (c *streamConn) Read(p []byte) (int, error) {
	if c.ending.Load() {
		c.setLastDeadline()
	}
	n, err := c.in.Body.Read(p)
	if err != nil && c.ending.Load() && errors.Is(err, os.ErrDeadlineExceeded) {
		err = io.EOF
	}
	return n, err
}

// Write sends p at once.
func (c *streamConn) Write(p []byte) (int, error) {
	if !c.startUse(&c.writing) {
		return 0, net.ErrClosed
	}
	defer c.endUse(&c.writing)
	n, err := c.w.Write(p)
	if err == nil {
		err = c.flush()
	}
	return n, err
}

func (c *streamConn) flush() error { return c.rc.Flush() }

// endWithin ends the client's half after the time all, or when the client was silent for the time
// silent. A later call can only end it earlier.
func (c *streamConn) endWithin(all, silent time.Duration) {
	c.lastMu.Lock()
	if until := time.Now().Add(all); c.until.IsZero() || until.Before(c.until) {
		c.until, c.silent = until, silent
	}
	c.ending.Store(true)
	c.lastMu.Unlock()
	c.setLastDeadline()
}

// setLastDeadline sets the deadline of the next read, or of a pending one.
func (c *streamConn) setLastDeadline() {
	c.lastMu.Lock()
	defer c.lastMu.Unlock()
	last := time.Now().Add(c.silent)
	if c.until.Before(last) {
		last = c.until
	}
	_ = c.setDeadline(c.rc.SetReadDeadline, last)
}

// startUse counts a call that is about to use w. It returns false if w may not be used any more.
func (c *streamConn) startUse(calls *int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	*calls++
	return true
}

// endUse counts the call of a startUse as returned.
func (c *streamConn) endUse(calls *int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*calls--
	c.unused.Broadcast()
}

// Close makes later calls fail and waits for those that use w. The stream ends with the handler,
// which must not return before. A blocked write is ended with a reset of the stream, which net/http
// can't send before the frame that its connection is sending: nothing else bounds Close.
func (c *streamConn) Close() error {
	c.mu.Lock()
	c.closed = true
	writing := c.writing > 0
	c.mu.Unlock()
	if writing {
		_ = c.callSet(c.rc.SetWriteDeadline, deadline.Past)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.writing+c.setting > 0 {
		c.unused.Wait()
	}
	return nil
}

func (c *streamConn) setDeadline(set func(time.Time) error, t time.Time) error {
	if !c.startUse(&c.setting) {
		return net.ErrClosed
	}
	defer c.endUse(&c.setting)
	return c.callSet(set, t)
}

// callSet calls a method that sets a deadline of w. A filter around w may have it panic, perhaps on
// a timer's goroutine.
func (c *streamConn) callSet(set func(time.Time) error, at time.Time) (err error) {
	defer c.t.catch(&err)
	return set(at)
}

func (c *streamConn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

func (c *streamConn) SetReadDeadline(t time.Time) error {
	if c.ending.Load() && t != deadline.Past {
		return nil // endWithin has set a last one
	}
	return c.setDeadline(c.rc.SetReadDeadline, t)
}

func (c *streamConn) SetWriteDeadline(t time.Time) error {
	return c.setDeadline(c.rc.SetWriteDeadline, t)
}

func (c *streamConn) LocalAddr() net.Addr {
	addr, _ := c.in.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return addr
}

// RemoteAddr returns the client's address, nil if the server has set none.
func (c *streamConn) RemoteAddr() net.Addr {
	addr, err := net.ResolveTCPAddr("tcp", c.in.RemoteAddr)
	if err != nil {
		return nil
	}
	return addr
}
