package proxyproto

import (
	"net"
	"sync"
	"time"
)

// Conn is a connection that begins with a header, which its first Read reads and removes.
type Conn struct {
	net.Conn
	timeout time.Duration // of the header; 0: no bound of its own

	once   sync.Once
	header Header
	err    error
	rest   []byte // what was read behind the header

	mu    sync.Mutex // guards until
	until time.Time  // the deadline that the user has set
}

// NewConn returns a Conn over c, whose header must be received within timeout from the first Read; 0 means no bound.
func NewConn(c net.Conn, timeout time.Duration) *Conn { return &Conn{Conn: c, timeout: timeout} }

// Header returns the header, or why there is none. It waits for it.
func (c *Conn) Header() (Header, error) {
	c.once.Do(c.read)
	return c.header, c.err
}

// Read implements net.Conn. If there is no valid header, it returns the error of Header.
func (c *Conn) Read(p []byte) (int, error) {
	if _, err := c.Header(); err != nil {
		return 0, err
	}
	if len(c.rest) == 0 {
		return c.Conn.Read(p)
	}
	n := copy(p, c.rest)
	if c.rest = c.rest[n:]; len(c.rest) == 0 {
		c.rest = nil
	}
	return n, nil
}

// read reads the header, and perhaps more.
func (c *Conn) read() {
	c.bound()
	defer c.unbound()
	b := make([]byte, 0, 256)
	for {
		m, err := c.Conn.Read(b[len(b):cap(b)])
		b = b[:len(b)+m]
		header, n, invalid := Parse(b)
		switch {
		case invalid != nil:
			c.err = invalid
			return
		case n > 0:
			c.header, c.rest = header, b[n:]
			return
		case err != nil:
			c.err = err
			return
		case len(b) == cap(b):
			b = append(make([]byte, 0, most2), b...)
		}
	}
}

// bound sets the deadline of the header, unless the user's is earlier.
func (c *Conn) bound() {
	c.mu.Lock()
	defer c.mu.Unlock()
	until := time.Now().Add(c.timeout)
	if c.timeout > 0 && (c.until.IsZero() || until.Before(c.until)) {
		_ = c.Conn.SetReadDeadline(until)
	}
}

// unbound sets the user's deadline again.
func (c *Conn) unbound() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timeout > 0 {
		_ = c.Conn.SetReadDeadline(c.until)
	}
}

// SetReadDeadline implements net.Conn.
func (c *Conn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.until = t
	return c.Conn.SetReadDeadline(t)
}

// SetDeadline implements net.Conn.
func (c *Conn) SetDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.until = t
	return c.Conn.SetDeadline(t)
}
