package wsupgrade

import (
	"fmt"
	"runtime/debug"

	"github.com/culvert-go/culvert/internal/panics"
)

// panicError carries what a user's function has panicked with to its tunnel: one of an Observer, or a method of one of the
// connections, which for an HTTP/2 stream are those of the ResponseWriter and of the request's body.
type panicError struct {
	value any
	stack []byte
}

// Error returns the value's text.
func (e *panicError) Error() string { return fmt.Sprintf("panic: %v", e.value) }

// catch is deferred around a call of a connection that may be a user's, and makes an error of a panic: most run on goroutines
// on which it would end the program. Before there is a tunnel, t is nil, a handler is the caller and gets the panic.
func (t *Tunnel) catch(err *error) {
	if t == nil {
		return
	}
	if v := recover(); v != nil {
		e := &panicError{v, debug.Stack()}
		t.panicked.CompareAndSwap(nil, e)
		*err = e
	}
}

// contain calls a method of a connection, and makes an error of a panic.
func (t *Tunnel) contain(method func() error) (err error) {
	defer t.catch(&err)
	return method()
}

// panicAgain panics on the handler's goroutine, behind the tunnel's end, where a user's function has: net/http and
// filters.Recover meet it there.
func (t *Tunnel) panicAgain() {
	if e := t.panicked.Load(); e != nil {
		panic(e.value)
	}
}

// logPanic logs what a user's function has panicked with, where no handler waits for the tunnel's end.
func (t *Tunnel) logPanic() {
	if e := t.panicked.Load(); e != nil {
		panics.Log(nil, "wsupgrade.Forwarder.Start's tunnel", e.value, e.stack)
	}
}

// contained is ended of which a panic is logged: no handler waits for it.
func contained(ended func(*Tunnel)) func(*Tunnel) {
	if ended == nil {
		return nil
	}
	return func(t *Tunnel) {
		defer panics.Contain(nil, "wsupgrade.Forwarder.Start's ended")
		ended(t)
	}
}
