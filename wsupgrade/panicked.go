package wsupgrade

import (
	"fmt"
	"runtime/debug"

	"github.com/culvert-go/culvert/internal/panics"
)

// panicError is a panic of a user's function in a tunnel: one of an Observer, or a method of one of
// the connections, which for an HTTP/2 stream are those of the ResponseWriter and of the request's
// body.
type panicError struct {
	value any
	stack []byte
}

// Error returns the value's text.
func (e *panicError) Error() string { return fmt.Sprintf("panic: %v", e.value) }

// catch is deferred around a call of a connection that may be a user's, and turns a panic into an
// error: most of these calls run on goroutines on which it would end the program. Before there is a
// tunnel, t is nil, the caller is a handler, and the panic is not caught.
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

// contain calls a method of a connection, and turns a panic into an error.
func (t *Tunnel) contain(method func() error) (err error) {
	defer t.catch(&err)
	return method()
}

// repanic panics on the handler's goroutine, after the tunnel's end, if a user's function has
// panicked: net/http and filters.Recover handle it there.
func (t *Tunnel) repanic() {
	if e := t.panicked.Load(); e != nil {
		panic(e.value)
	}
}

// logPanic logs the panic of a user's function where no handler waits for the tunnel's end.
func (t *Tunnel) logPanic() {
	if e := t.panicked.Load(); e != nil {
		panics.Log(nil, "wsupgrade.Forwarder.Start's tunnel", e.value, e.stack)
	}
}

// containPanic returns ended with its panics logged: no handler waits for it.
func containPanic(ended func(*Tunnel)) func(*Tunnel) {
	if ended == nil {
		return nil
	}
	return func(t *Tunnel) {
		defer panics.Contain(nil, "wsupgrade.Forwarder.Start's ended")
		ended(t)
	}
}
