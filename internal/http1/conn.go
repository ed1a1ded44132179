package http1

import (
	"bufio"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/culvert-go/culvert/internal/deadline"
)

// readBuffer is the size of a kept connection's buffer: a small response fits, header and body.
const readBuffer = 4 << 10

// Conn is a connection to a target. Its exchange alone uses it, but for Interrupt.
type Conn struct {
	// R reads what the target sends.
	R *bufio.Reader
	// Reused reports whether there were exchanges before this one.
	Reused bool
	// Last reports whether this exchange is the last one: its request has "Connection: close".
	Last bool

	pool *Pool
	addr Addr
	net  net.Conn
	raw  net.Conn // below TLS, where net speaks that; else net

	born     time.Time
	idle     time.Time // since when it is
	requests int
	peek     peeker
	secure   bool    // net speaks TLS
	socket   bool    // net is a socket that peek looks at
	one      [1]byte // for Clean

	received, sent atomic.Int64 // bytes, those of TLS left out

	interrupted atomic.Bool
	writeFailed atomic.Bool
	mu          sync.Mutex // guards the deadlines
	readTimeout time.Duration
	readUntil   time.Time
	readFor     time.Duration // the timeout that readUntil is made of
	writeUntil  time.Time
}

func newConn(p *Pool, addr Addr, c net.Conn) *Conn {
	conn := &Conn{pool: p, addr: addr, net: c, born: time.Now()}
	conn.R = bufio.NewReaderSize(conn, readBuffer)
	conn.raw = c
	if t, ok := c.(*tls.Conn); ok {
		conn.raw, conn.secure = t.NetConn(), true
	}
	if s, ok := conn.raw.(syscall.Conn); ok {
		conn.peek.init(s)
	}
	switch c.(type) {
	case *net.TCPConn, *net.UnixConn:
		conn.socket = canMove
	}
	return conn
}

// SetReadTimeout bounds each read from now on; 0 is no bound. It may be called while
// another goroutine reads.
func (c *Conn) SetReadTimeout(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.readTimeout = d
}

// StartReadTimeout is SetReadTimeout for a read that has begun.
func (c *Conn) StartReadTimeout(d time.Duration) {
	c.SetReadTimeout(d)
	c.extendRead()
}

// Read reads from the connection: R does.
func (c *Conn) Read(p []byte) (int, error) {
	c.extendRead()
	n, err := c.net.Read(p)
	c.received.Add(int64(n))
	return n, err
}

// extendRead sets the deadline of a read.
func (c *Conn) extendRead() {
	c.mu.Lock()
	defer c.mu.Unlock()
	var until time.Time
	if c.readTimeout != 0 {
		if c.readFor != c.readTimeout {
			c.readUntil = time.Time{} // of another timeout, perhaps a longer one
		}
		until = deadline.Extend(c.readUntil, c.readTimeout)
	}
	c.readFor = c.readTimeout
	c.setRead(until)
}

// stopReadTimeout takes the deadline away until the next extendRead.
func (c *Conn) stopReadTimeout() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.setRead(time.Time{})
}

// setRead sets the deadline of reads; the zero time is none. The caller holds c.mu.
func (c *Conn) setRead(until time.Time) {
	if until.Equal(c.readUntil) {
		return
	}
	c.readUntil = until
	_ = c.net.SetReadDeadline(until)
	c.stayInterrupted()
}

// Write writes to the connection, within the pool's WriteTimeout.
func (c *Conn) Write(p []byte) (int, error) {
	if d := c.pool.o.WriteTimeout; d > 0 {
		c.extendWrite(d)
	}
	n, err := c.net.Write(p)
	c.sent.Add(int64(n))
	if err != nil {
		c.writeFailed.Store(true)
	}
	return n, err
}

// writeAndAwait writes what of p a plain socket takes at once, and waits for the response if that was all. The read timeout
// bounds the wait; late is set if it has passed. On other connections nothing is written.
func (c *Conn) writeAndAwait(p []byte) (n int, late bool) {
	if !c.socket {
		return 0, false
	}
	c.extendRead()
	n, late = c.peek.sendAndAwait(p)
	c.sent.Add(int64(n))
	return n, late
}

// WriteWithin writes as much of p as a socket takes within d, or nothing where it is not known how much of p has been
// written in time: over TLS, or a connection of the embedder's. A Write of the rest may follow.
func (c *Conn) WriteWithin(p []byte, d time.Duration) (n int, err error) {
	switch c.net.(type) {
	case *net.TCPConn, *net.UnixConn:
	default:
		return 0, nil
	}
	c.limitWrite(time.Now().Add(d))
	n, err = c.net.Write(p)
	c.sent.Add(int64(n))
	if c.pool.o.WriteTimeout <= 0 {
		c.limitWrite(time.Time{})
	}
	if errors.Is(err, os.ErrDeadlineExceeded) && !c.interrupted.Load() {
		err = nil
	}
	return n, err
}

// limitWrite sets the deadline of writes; the zero time is none.
func (c *Conn) limitWrite(until time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.setWrite(until)
}

func (c *Conn) extendWrite(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.setWrite(deadline.Extend(c.writeUntil, d))
}

// setWrite is setRead for writes.
func (c *Conn) setWrite(until time.Time) {
	if until.Equal(c.writeUntil) {
		return
	}
	c.writeUntil = until
	_ = c.net.SetWriteDeadline(until)
	c.stayInterrupted()
}

// stayInterrupted keeps a deadline that was just moved from undoing Interrupt.
func (c *Conn) stayInterrupted() {
	if c.interrupted.Load() {
		_ = c.net.SetDeadline(deadline.Past)
	}
}

// Interrupt makes reads and writes fail, those that have begun too. The connection can't be
// used again. Any goroutine may call it.
func (c *Conn) Interrupt() {
	c.interrupted.Store(true)
	if !c.contain(func() { _ = c.net.SetDeadline(deadline.Past) }) {
		c.Close() // or a read would wait on
	}
}

// Close closes the connection. Behind an exchange that was broken off no alert of TLS is sent before: crypto/tls would wait
// for up to 5 seconds until the target accepts it.
func (c *Conn) Close() {
	c.contain(func() {
		if c.interrupted.Load() || c.writeFailed.Load() {
			_ = c.raw.Close()
			return
		}
		_ = c.net.Close()
	})
}

// contain calls f, which calls methods of the connection, on a goroutine of this package perhaps. A panic of an embedder's
// own connection would end the program there. It reports whether f has returned.
func (c *Conn) contain(f func()) (returned bool) {
	defer func() {
		if v := recover(); v != nil {
			c.pool.logPanic(v, debug.Stack())
		}
	}()
	f()
	return true
}

// Keep gives the connection back to its pool. It must be Clean.
func (c *Conn) Keep() { c.pool.put(c) }

// Clean reports whether nothing remains of what was read from the socket. TLS decrypts whole records: what
// stood in one with the end of a response is seen neither in R nor on the socket, so the connection is read,
// with no time to read more.
func (c *Conn) Clean() bool {
	if c.R.Buffered() > 0 {
		return false
	}
	if !c.secure {
		return true
	}
	c.mu.Lock()
	c.setRead(deadline.Past)
	c.mu.Unlock()
	n, err := c.net.Read(c.one[:])
	return n == 0 && errors.Is(err, os.ErrDeadlineExceeded)
}

// silent reports whether the target has neither sent anything since the exchange got the connection nor closed it: where
// nothing was written, what it sends responds to no request (RFC 9112 section 9.2). Of a fresh TLS connection, on which
// session tickets arrive, and on other systems than Linux it is not known, and true.
func (c *Conn) silent() bool { return c.secure && !c.Reused || c.peek.idleAndClean() }

// Raw is the connection below R, where the kernel can move its bytes: nil over TLS.
func (c *Conn) Raw() *net.TCPConn {
	t, _ := c.net.(*net.TCPConn)
	return t
}
