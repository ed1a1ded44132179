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

	"github.com/culvert-go/culvert/internal/clientside"
	"github.com/culvert-go/culvert/internal/deadline"
)

// streamConn is an HTTP/2 stream as a net.Conn. Its server can't half-close it: the stream ends
// when the handler returns.
type streamConn struct {
	client clientside.Handle // until Close
	in     *http.Request
	t      *Tunnel // which records panics of client's deadlines; nil before there is one
	ending atomic.Bool

	lastMu sync.Mutex    // guards until and silent, and is held while the last deadlines are set
	until  time.Time     // of endWithin
	silent time.Duration // the same
}

// newStreamConn returns the stream of in as a connection. It removes the server's deadlines, which
// are not the tunnel's.
func newStreamConn(w http.ResponseWriter, in *http.Request) *streamConn {
	c := &streamConn{in: in}
	c.client.Start(w, in)
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
	n, err := c.client.Write(p)
	if err == nil {
		err = c.flush()
	}
	return n, err
}

func (c *streamConn) flush() error { return c.client.Flush() }

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
	_ = c.setDeadline(c.client.SetReadDeadline, last)
}

// Close makes later calls fail and waits for those that use the stream, which ends with the
// handler. It fails a write that waits for the client, but nothing bounds how long that takes.
func (c *streamConn) Close() (err error) {
	defer c.t.catch(&err)
	c.client.End()
	return nil
}

// setDeadline calls set, which sets a deadline of client. A filter around the writer may have it
// panic, perhaps on a timer's goroutine.
func (c *streamConn) setDeadline(set func(time.Time) error, t time.Time) (err error) {
	defer c.t.catch(&err)
	return set(t)
}

func (c *streamConn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

func (c *streamConn) SetReadDeadline(t time.Time) error {
	if c.ending.Load() && t != deadline.Past {
		return nil // endWithin has set a last one
	}
	return c.setDeadline(c.client.SetReadDeadline, t)
}

func (c *streamConn) SetWriteDeadline(t time.Time) error {
	return c.setDeadline(c.client.SetWriteDeadline, t)
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
