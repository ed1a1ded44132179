package wsupgrade

import (
	"fmt"

	"github.com/culvert-go/culvert/internal/panics"
)

// panicError carries what a function of an Observer has panicked with from a codec to its tunnel.
type panicError struct {
	value any
	stack []byte
}

// Error returns the value's text.
func (e *panicError) Error() string { return fmt.Sprintf("panic: %v", e.value) }

// panicAgain panics on the handler's goroutine, behind the tunnel's end, where the Observer has panicked: net/http and
// filters.Recover meet it there.
func (t *Tunnel) panicAgain() {
	if e := t.panicked.Load(); e != nil {
		panic(e.value)
	}
}

// logPanic logs what the Observer has panicked with, where no handler waits for the tunnel's end.
func (t *Tunnel) logPanic() {
	if e := t.panicked.Load(); e != nil {
		panics.Log(nil, "wsupgrade.Observer", e.value, e.stack)
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
