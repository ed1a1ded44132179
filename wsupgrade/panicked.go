package wsupgrade

import (
	"runtime/debug"

	"github.com/culvert-go/culvert/internal/panics"
)

// catch is panics.Catch for a call of a connection that may be a user's; that of an HTTP/2 stream
// consists of the ResponseWriter and the request's body. The tunnel keeps the first panic. Before there
// is a tunnel, t is nil, the caller is a handler, and the panic is not caught.
func (t *Tunnel) catch(err *error) {
	if t == nil {
		return
	}
	if v := recover(); v != nil {
		e := &panics.Error{Value: v, Stack: debug.Stack()}
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
		panic(e.Value)
	}
}

// logPanic logs the panic of a user's function where no handler waits for the tunnel's end.
func (t *Tunnel) logPanic() {
	if e := t.panicked.Load(); e != nil {
		panics.Log(nil, "wsupgrade.Forwarder.Start's tunnel", e.Value, e.Stack)
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
