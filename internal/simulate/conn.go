package simulate

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Conn is one end of a connection of a Network.
type Conn struct {
	in, out       *half
	local, remote Addr
	closed        chan struct{} // by this end
	once          sync.Once
	abrupt        atomic.Bool // Close resets the connection
}

// Addr is an address of a Network, an IP address and a port.
type Addr string

// Network returns "tcp".
func (a Addr) Network() string { return "tcp" }

// String returns the address.
func (a Addr) String() string { return string(a) }

// newPair returns the two ends of a connection.
func newPair(a, b Addr, there, back Link, offset time.Duration, faults *Tally) (*Conn, *Conn) {
	mu := new(sync.Mutex)
	forth, reverse := new(half), new(half)
	forth.init(mu, reverse, there, offset, faults)
	reverse.init(mu, forth, back, offset+1, faults)
	return &Conn{in: reverse, out: forth, local: a, remote: b, closed: make(chan struct{})},
		&Conn{in: forth, out: reverse, local: b, remote: a, closed: make(chan struct{})}
}

// Read reads what has arrived.
func (c *Conn) Read(p []byte) (int, error) {
	n, err := c.in.read(p)
	return n, c.fault("read", err)
}

// Write sends p as far as the window permits, and waits for the rest.
func (c *Conn) Write(p []byte) (int, error) {
	n, err := c.out.write(p)
	return n, c.fault("write", err)
}

// fault wraps an error in a *net.OpError, as package net does.
func (c *Conn) fault(op string, err error) error {
	if err == nil || op == "read" && err.Error() == "EOF" {
		return err
	}
	return &net.OpError{Op: op, Net: "tcp", Source: c.local, Addr: c.remote, Err: err}
}

// CloseWrite sends a FIN.
func (c *Conn) CloseWrite() error {
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	c.out.end()
	return nil
}

// Close closes both directions. Data that was written arrives, unless data from the other
// end was not read: then the connection is reset.
func (c *Conn) Close() error {
	if c.abrupt.Load() {
		c.Reset()
		return nil
	}
	c.once.Do(func() { close(c.closed) })
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	c.out.end()
	c.in.close()
	return nil
}

// SetLinger has Close reset the connection if sec is 0, as that of net.TCPConn has.
func (c *Conn) SetLinger(sec int) error {
	c.abrupt.Store(sec == 0)
	return nil
}

// Reset ends both directions at once. Data that was not read is lost.
func (c *Conn) Reset() {
	c.once.Do(func() { close(c.closed) })
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	c.out.ended, c.in.closed, c.in.closedAt = true, true, time.Now()
	c.out.breakOff()
}

// LocalAddr returns the address of this end.
func (c *Conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr returns the address of the other end.
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline is SetReadDeadline and SetWriteDeadline.
func (c *Conn) SetDeadline(t time.Time) error {
	_ = c.SetReadDeadline(t)
	return c.SetWriteDeadline(t)
}

// SetReadDeadline makes reads fail from t on; the zero time removes the deadline.
func (c *Conn) SetReadDeadline(t time.Time) error {
	c.in.setDeadline(&c.in.reader, t)
	return nil
}

// SetWriteDeadline makes writes fail from t on; the zero time removes the deadline.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	c.out.setDeadline(&c.out.writer, t)
	return nil
}
