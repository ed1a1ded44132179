package wsupgrade

import (
	"context"
	"net"
	"sync/atomic"

	"github.com/culvert-go/culvert/internal/deadline"
	"github.com/culvert-go/culvert/internal/panics"
)

// catchPanic calls a method of a connection on a goroutine on which a panic would end the program,
// and turns one into an error.
func catchPanic(method func() error) (err error) {
	defer panics.Catch(&err)
	return method()
}

// interruptWhenDone interrupts c when ctx is done, before there is a tunnel. The caller calls stop
// when it no longer uses c. stop reports whether c was interrupted, and panics with the value of a
// method of c that has panicked meanwhile.
func interruptWhenDone(ctx context.Context, c net.Conn) (stop func() (interrupted bool)) {
	done := make(chan struct{})
	var panicked *panics.Error
	pending := context.AfterFunc(ctx, func() {
		defer close(done)
		panicked = interrupt(c)
	})
	return func() bool {
		if pending() {
			return false
		}
		<-done
		if panicked != nil {
			panic(panicked.Value)
		}
		return true
	}
}

// interrupt makes reads and writes of c fail, and returns a panic of c's. A connection that panics
// has no deadline, so it is closed.
func interrupt(c net.Conn) *panics.Error {
	e, _ := catchPanic(func() error { return c.SetDeadline(deadline.Past) }).(*panics.Error)
	if e != nil {
		_ = catchPanic(c.Close)
	}
	return e
}

// handshaking is a connection during a TLS handshake. crypto/tls closes it on a goroutine of its
// own when the context ends.
type handshaking struct {
	net.Conn
	finished atomic.Bool
	panicked atomic.Pointer[panics.Error]
}

// Close closes the connection, and catches a panic until the handshake is over.
func (c *handshaking) Close() error {
	if c.finished.Load() {
		return c.Conn.Close()
	}
	err := catchPanic(c.Conn.Close)
	if e, ok := err.(*panics.Error); ok {
		c.panicked.CompareAndSwap(nil, e)
	}
	return err
}

// finish is called when the handshake is over. It panics with the value of a Close that has
// panicked.
func (c *handshaking) finish() {
	c.finished.Store(true)
	if e := c.panicked.Load(); e != nil {
		panic(e.Value)
	}
}
