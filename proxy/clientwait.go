package proxy

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/culvert-go/culvert"
)

// targetTime is how much of the time to a response's header, of an attempt that started then, the target is to blame for:
// none while the client was still sending, or accepting an interim response.
func (c *call) targetTime(started time.Time, toHeader time.Duration) time.Duration {
	toHeader = max(0, toHeader-c.interim.slow.spent())
	return c.body.TargetTime(started, toHeader)
}

// kindOfTimeout is the kind of a failure of an exchange whose time ran out, by who was waited for.
func (c *call) kindOfTimeout(ctx context.Context) culvert.ErrorKind {
	if c.body.AwaitsClient() {
		return culvert.BodyTooSlow
	}
	if end, ok := ctx.Deadline(); ok && c.interim.slow.covers(end) {
		return culvert.ClientGone
	}
	return culvert.Timeout
}

// timeOver returns why the time of an exchange is over, nil while it is not. A read of the client fails at the same time, and net/http's
// server may cancel ctx for that before the time does. It is not what has failed where the attempt did not wait for it.
func (c *call) timeOver(ctx context.Context) error {
	cause := context.Cause(ctx)
	if errors.Is(cause, context.DeadlineExceeded) {
		return cause
	}
	end, ok := ctx.Deadline()
	if ok && !time.Now().Before(end) && !c.body.AwaitsClient() && errors.Is(c.source.Failure(), os.ErrDeadlineExceeded) {
		return errTotalTimeout
	}
	return nil
}
