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
	after   time.Duration
	timer   *time.Timer // nil: nothing is bounded
	settled bool        // the response's header was received, or the attempt has ended
}

// BoundUpload has cancel called, with ErrStalled, when the target has taken timeout to accept a piece, to a quarter. It is
// called before the first read.
func (a *Attempt) BoundUpload(timeout time.Duration, cancel context.CancelCauseFunc) {
	a.stall.after = timeout + timeout/4
	if a.stall.after < timeout { // the longest there is
		a.stall.after = timeout
	}
	a.stall.timer = time.AfterFunc(a.stall.after, func() {
		if a.uploads() {
			cancel(ErrStalled)
		}
	})
	a.stall.timer.Stop()
}

func (a *Attempt) uploads() bool {
	a.body.mu.Lock()
	defer a.body.mu.Unlock()
	return !a.stall.settled
}

// Accepted is called when the transport has sent all that it was given.
func (a *Attempt) Accepted() {
	a.body.mu.Lock()
	defer a.body.mu.Unlock()
	a.stall.stop()
}

// start is called when the transport has been given a piece, or the end.
func (s *stall) start() {
	if s.timer != nil && !s.settled {
		s.timer.Reset(s.after)
	}
}

// stop is called when the transport comes for the next piece, or has sent all of them.
func (s *stall) stop() {
	if s.timer != nil {
		s.timer.Stop()
	}
}

// settle ends the bound.
func (s *stall) settle() {
	s.settled = true
	s.stop()
}
