package wstest

import (
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// pipeBuffer is how many bytes a direction holds before a writer waits, as in a small socket
// buffer.
const pipeBuffer = 64 << 10

// Pipe returns the two ends of a connection in memory. Unlike net.Pipe it buffers 64 KiB each way
// and can be half-closed (CloseWrite), as a TCP connection can. Deadlines follow the clock of a
// testing/synctest bubble.
func Pipe() (a, b Conn) {
	there, back := newLane(), newLane()
	return &pipeConn{in: back, out: there}, &pipeConn{in: there, out: back}
}

// Conn is one end of a Pipe. Its methods may be called by multiple goroutines; the bytes of concurrent
// writes that wait for room in the buffer may interleave. Write returns when all bytes are in the
// buffer or read. After Close the other end can read what is in the buffer.
type Conn interface {
	net.Conn
	// CloseWrite ends the written bytes: the other end reads what was written, and then io.EOF.
	CloseWrite() error
}

// pipeConn is a Conn.
type pipeConn struct{ in, out *lane }

// Read reads what the other end has written. It returns io.EOF when the other end has closed.
func (c *pipeConn) Read(p []byte) (int, error) { return c.in.read(p) }

// Write returns when all of p is in the buffer or read.
func (c *pipeConn) Write(p []byte) (int, error) { return c.out.write(p) }

// CloseWrite ends the written bytes: the other end reads what was written, and then io.EOF.
func (c *pipeConn) CloseWrite() error {
	c.out.change(func(l *lane) { l.writeClosed = true })
	return nil
}

// Close closes both directions. The other end can read what is in the buffer.
func (c *pipeConn) Close() error {
	c.out.change(func(l *lane) { l.writeClosed = true })
	c.in.change(func(l *lane) { l.readClosed = true })
	return nil
}

// SetDeadline calls SetReadDeadline and SetWriteDeadline.
func (c *pipeConn) SetDeadline(t time.Time) error {
	_ = c.SetReadDeadline(t)
	return c.SetWriteDeadline(t)
}

// SetReadDeadline makes reads fail from t on with os.ErrDeadlineExceeded. The zero time means no
// deadline.
func (c *pipeConn) SetReadDeadline(t time.Time) error { return c.in.setDeadline(&c.in.reader, t) }

// SetWriteDeadline makes writes fail from t on with os.ErrDeadlineExceeded. The zero time means no
// deadline.
func (c *pipeConn) SetWriteDeadline(t time.Time) error { return c.out.setDeadline(&c.out.writer, t) }

// LocalAddr returns an address of the documentation's network.
func (c *pipeConn) LocalAddr() net.Addr { return addr{} }

// RemoteAddr returns the same address as LocalAddr.
func (c *pipeConn) RemoteAddr() net.Addr { return addr{} }

// addr is the address of both ends.
type addr struct{}

func (addr) Network() string { return "pipe" }
func (addr) String() string  { return "192.0.2.1:1234" } // httptest's, so that it parses

// lane is one direction.
type lane struct {
	mu             sync.Mutex
	changed        sync.Cond
	held           []byte
	writeClosed    bool // nothing more is written
	readClosed     bool // the reader has closed
	reader, writer alarm
}

// alarm is a deadline of one end.
type alarm struct {
	expired bool
	timer   *time.Timer
}

func newLane() *lane {
	l := new(lane)
	l.changed.L = &l.mu
	return l
}

func (l *lane) change(f func(*lane)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f(l)
	l.changed.Broadcast()
}

func (l *lane) read(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		switch {
		case l.readClosed:
			return 0, net.ErrClosed
		case l.reader.expired:
			return 0, os.ErrDeadlineExceeded
		case len(l.held) > 0 || len(p) == 0:
			n := copy(p, l.held)
			l.held = l.held[n:]
			l.changed.Broadcast()
			return n, nil
		case l.writeClosed:
			return 0, io.EOF
		}
		l.changed.Wait()
	}
}

func (l *lane) write(p []byte) (n int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for n < len(p) {
		switch {
		case l.writeClosed:
			return n, net.ErrClosed
		case l.readClosed:
			return n, io.ErrClosedPipe
		case l.writer.expired:
			return n, os.ErrDeadlineExceeded
		case len(l.held) < pipeBuffer:
			m := min(len(p)-n, pipeBuffer-len(l.held))
			l.held = append(l.held, p[n:n+m]...)
			n += m
			l.changed.Broadcast()
		default:
			l.changed.Wait()
		}
	}
	return n, nil
}

func (l *lane) setDeadline(a *alarm, t time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a.timer != nil {
		a.timer.Stop()
		a.timer = nil
	}
	a.expired = !t.IsZero() && !t.After(time.Now())
	if !t.IsZero() && !a.expired {
		var timer *time.Timer
		timer = time.AfterFunc(time.Until(t), func() {
			l.change(func(*lane) {
				if a.timer == timer {
					a.expired = true
				}
			})
		})
		a.timer = timer
	}
	l.changed.Broadcast()
	return nil
}
