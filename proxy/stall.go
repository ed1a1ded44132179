package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/culvert-go/culvert"
)

var errBodyStalled = fmt.Errorf("the response body came to a halt: %w", context.DeadlineExceeded)

// stallWatch cancels an exchange whose target stops sending its body.
type stallWatch struct {
	io.ReadCloser
	after time.Duration
	timer *time.Timer
}

func newStallWatch(body io.ReadCloser, after time.Duration, cancel context.CancelCauseFunc) *stallWatch {
	timer := time.AfterFunc(after, func() { cancel(errBodyStalled) })
	timer.Stop()
	return &stallWatch{body, after, timer}
}

func (s *stallWatch) Read(p []byte) (int, error) {
	s.timer.Reset(s.after)
	defer s.timer.Stop()
	return s.ReadCloser.Read(p)
}

// refine distinguishes the timeouts of a response's body, and the failures of the request's, which end the exchange with
// the target, from its other failures.
func refine(ctx context.Context, e *culvert.Error, c *call) *culvert.Error {
	if e == nil {
		return nil
	}
	cause, failure, over := context.Cause(ctx), c.source.Failure(), c.timeOver(ctx)
	switch {
	case e.Kind == culvert.BodyBroken, e.Kind == culvert.Timeout:
	case e.Kind == culvert.ClientGone && cause == context.Canceled && errors.Is(failure, os.ErrDeadlineExceeded):
		// net/http's server cancels a request of whose body it can't read more, for any reason.
	default:
		return e
	}
	switch {
	case stalled(cause):
		e.Kind, e.Err = culvert.Timeout, cause
	case over != nil:
		e.Kind, e.Err = c.kindOfTimeout(ctx), over
	case failure != nil:
		ours := c.source.Fault(failure)
		e.Kind, e.Err = ours.Kind, ours.Err
	}
	return e
}
