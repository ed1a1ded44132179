package proxy

import (
	"context"
	"errors"
	"net"
	"os"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/errs"
	"github.com/culvert-go/culvert/internal/panics"
	"github.com/culvert-go/culvert/internal/replay"
	"github.com/culvert-go/culvert/upstream"
)

// dialFailed reports whether err is of a connection that could not be made, so that
// nothing was sent.
func dialFailed(err error) bool {
	var dial *upstream.DialError
	var op *net.OpError // of a transport that is not a group's
	return errors.As(err, &dial) || errors.As(err, &op) && op.Op == "dial"
}

// classify turns an error of RoundTrip into the typed one. The order matters:
// a client that left, or whose body broke, makes the transport fail as well.
func classify(ctx context.Context, err error, c *call) *culvert.Error {
	e := &culvert.Error{Kind: culvert.HeaderInvalid, BytesSent: true, Err: err}
	own := errs.As(err) // of an embedder's transport
	switch failure, cause, over := c.source.Failure(), context.Cause(ctx), c.timeOver(ctx); {
	case stalled(cause):
		e.Kind, e.Err = culvert.Timeout, cause
	case over != nil:
		e.Kind, e.Err = c.kindOfTimeout(ctx), over
	case errors.Is(cause, errRefused):
		e.BytesSent, e.Err = false, cause
	case errors.Is(cause, errUnclear):
		e.Err = cause
	case failure != nil:
		e = c.source.Fault(failure)
		e.BytesSent = true
	case errors.As(err, new(*panics.Error)): // of a connection of the embedder's
		e.Kind = culvert.Internal
	case ctx.Err() != nil:
		e.Kind = culvert.ClientGone
	case own != nil:
		e.Kind, e.BytesSent, e.RetryAfter = own.Kind, own.BytesSent, own.RetryAfter
	case refused(err):
		e.BytesSent = false
	case dialFailed(err):
		e.Kind, e.BytesSent = errs.KindOfDial(err), false
	case isTimeout(err):
		e.Kind = culvert.Timeout
	}
	return e
}

// stalled reports whether an attempt was ended since its target has stalled: that is the target's failure, also if
// the client still has more to send, to this attempt or to one that has left its read.
func stalled(cause error) bool {
	return errors.Is(cause, replay.ErrStalled) || errors.Is(cause, errBodyStalled)
}

func isTimeout(err error) bool {
	var netErr net.Error
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) || errors.As(err, &netErr) && netErr.Timeout()
}
