package proxy

import (
	"context"
	"fmt"
	"net/http/httptrace"
	"sync/atomic"
	"time"
)

var errUploadStalled = fmt.Errorf("the target does not accept the request's body: %w", context.DeadlineExceeded)

// uploadWatch ends an attempt over net/http's transport whose target has taken too long to accept a piece of the body,
// before it has begun its final response. Writes have a bound of their own there, but not the wait for a window of HTTP/2.
// The transport reads the end of a body beside the last piece or before it has sent that: that the piece was accepted is
// known from the trace. An embedder's transport may pause as it likes. A nil uploadWatch watches nothing.
type uploadWatch struct {
	after   time.Duration
	timer   *time.Timer
	settled atomic.Bool // the response's header has been received, or the attempt has ended
}

// newUploadWatch returns what calls cancel behind timeout, to a quarter; 0 means no bound. It has trace tell when the request
// has been sent.
func newUploadWatch(timeout time.Duration, trace *httptrace.ClientTrace, cancel context.CancelCauseFunc) *uploadWatch {
	if timeout == 0 {
		return nil
	}
	w := &uploadWatch{after: timeout + timeout/4}
	if w.after < timeout { // the longest there is
		w.after = timeout
	}
	w.timer = time.AfterFunc(w.after, func() {
		if !w.settled.Load() {
			cancel(errUploadStalled)
		}
	})
	w.timer.Stop()
	trace.WroteRequest = func(httptrace.WroteRequestInfo) { w.accepted() }
	return w
}

// given is called when the transport has been given a piece, or the end.
func (w *uploadWatch) given() {
	if w != nil && !w.settled.Load() {
		w.timer.Reset(w.after)
	}
}

// accepted is called when the transport comes for the next piece, or has sent all of them.
func (w *uploadWatch) accepted() {
	if w != nil {
		w.timer.Stop()
	}
}

// settle ends the watch.
func (w *uploadWatch) settle() {
	if w != nil {
		w.settled.Store(true)
		w.timer.Stop()
	}
}
