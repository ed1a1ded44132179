package replay

import (
	"context"
	"fmt"
	"time"
)

// ErrStalled is what BoundUpload cancels with.
var ErrStalled = fmt.Errorf("the target does not accept the request's body: %w", context.DeadlineExceeded)

// stall ends an attempt over net/http's transport whose target has taken too long to accept a piece of the body,
// before it has begun its final response. Writes have a bound of their own there, but not the wait for a window of HTTP/2.
// The transport reads the end of a body beside the last piece or before it has sent that: that the piece was accepted is
// known from the trace. An embedder's transport may pause as it likes.
type stall struct {
	stallAfter time.Duration
	stallTimer *time.Timer // runs while the transport has a piece that it has not sent; nil: nothing is bounded
}

// BoundUpload has cancel called, with ErrStalled, when the target has taken timeout to accept a piece, to a quarter. It is
// called before the first read.
func (a *Attempt) BoundUpload(timeout time.Duration, cancel context.CancelCauseFunc) {
	a.stallAfter = timeout + timeout/4
	if a.stallAfter < timeout { // the longest there is
		a.stallAfter = timeout
	}
	a.stallTimer = time.AfterFunc(a.stallAfter, func() {
		if a.uploads() {
			cancel(ErrStalled)
		}
	})
	a.stallTimer.Stop()
}

// uploads reports whether the target is still to accept the body, before its response.
func (a *Attempt) uploads() bool {
	a.body.mu.Lock()
	defer a.body.mu.Unlock()
	return a.boundsUpload()
}

func (a *Attempt) boundsUpload() bool {
	return a.stallTimer != nil && !a.returned && a.state != ended
}

// Accepted is called when the transport has sent all that it was given.
func (a *Attempt) Accepted() {
	a.body.mu.Lock()
	defer a.body.mu.Unlock()
	a.stopStall()
}

// startStall is called when the transport has been given a piece, or the end. The caller holds the body's mu.
func (a *Attempt) startStall() {
	if a.boundsUpload() {
		a.stallTimer.Reset(a.stallAfter)
	}
}

// stopStall is called when the transport comes for the next piece, or needs none. The caller holds the body's mu.
func (a *Attempt) stopStall() {
	if a.stallTimer != nil {
		a.stallTimer.Stop()
	}
}
