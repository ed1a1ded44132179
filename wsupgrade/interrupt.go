package wsupgrade

import (
	"context"
	"net"
	"runtime/debug"
	"sync/atomic"
)

// caught calls a method of a connection on a goroutine on which a panic would end the program, and makes an error of one.
func caught(method func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &panicError{v, debug.Stack()}
		}
	}()
	return method()
}

// endWith breaks c off when ctx ends, before there is a tunnel. The caller calls stop when it no longer uses c, which reports
// whether c was broken off, and panics with what a method of c has panicked with for that.
func endWith(ctx context.Context, c net.Conn) (stop func() (ended bool)) {
	done := make(chan struct{})
	var panicked *panicError
	pending := context.AfterFunc(ctx, func() {
		defer close(done)
		panicked = breakOff(c)
	})
	return func() bool {
		if pending() {
			return false
		}
		<-done
		if panicked != nil {
			panic(panicked.value)
		}
		return true
	}
}

// breakOff fails what is read from c and written to it, and returns a panic of c's. A connection that panics has no deadline,
// so that it is closed.
func breakOff(c net.Conn) *panicError {
	e, _ := caught(func() error { return c.SetDeadline(past) }).(*panicError)
	if e != nil {
		_ = caught(c.Close)
	}
	return e
}

// handshaking is a connection during a TLS handshake, which crypto/tls closes on a goroutine of its own when the context ends.
type handshaking struct {
	net.Conn
	over     atomic.Bool
	panicked atomic.Pointer[panicError]
}

// Close catches a panic until the handshake is over.
func (c *handshaking) Close() error {
	if c.over.Load() {
		return c.Conn.Close()
	}
	err := caught(c.Conn.Close)
	if e, ok := err.(*panicError); ok {
		c.panicked.CompareAndSwap(nil, e)
	}
	return err
}

// end is called when the handshake is over, and panics with what a Close has panicked with.
func (c *handshaking) end() {
	c.over.Store(true)
	if e := c.panicked.Load(); e != nil {
		panic(e.value)
	}
}
