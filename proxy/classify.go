package proxy

import (
	"context"
	"errors"
	"net"
	"net/http/httptrace"
	"os"
	"sync/atomic"

	"github.com/culvert-go/culvert/internal/fault"
)

// dialWatch learns from the transport's trace whether a connection was had, so
// that an error before it is known to have sent nothing.
type dialWatch struct{ asked, got atomic.Bool }

func (d *dialWatch) ask(string)                 { d.asked.Store(true) }
func (d *dialWatch) have(httptrace.GotConnInfo) { d.got.Store(true) }

// failed says whether a connection was asked for in vain. A transport that
// tells nothing is taken to have had one.
func (d *dialWatch) failed(err error) bool {
	var op *net.OpError
	return d.asked.Load() && !d.got.Load() || errors.As(err, &op) && op.Op == "dial"
}

// classify turns an error of RoundTrip into the typed one. The order matters:
// a client that left, or whose body broke, makes the transport fail as well.
func classify(ctx context.Context, err error, body *requestBody, dial *dialWatch) *fault.Error {
	e := &fault.Error{Kind: fault.Head, Wrote: true, Err: err}
	var netErr net.Error
	switch failure, cause := body.source.failed(), context.Cause(ctx); {
	case errors.Is(cause, context.DeadlineExceeded):
		e.Kind, e.Err = fault.Timeout, cause
	case failure != nil:
		e = clientFault(body.source.in, failure)
		e.Wrote = true
	case ctx.Err() != nil:
		e.Kind = fault.ClientGone
	case dial.failed(err):
		e.Kind, e.Wrote = fault.Dial, false
		if errors.As(err, &netErr) && netErr.Timeout() {
			e.Kind = fault.Timeout
		}
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded), errors.As(err, &netErr) && netErr.Timeout():
		e.Kind = fault.Timeout
	}
	return e
}
