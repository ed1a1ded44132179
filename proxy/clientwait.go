package proxy

import (
	"context"
	"errors"
	"os"
	"sync/atomic"
	"time"

	"github.com/culvert-go/culvert"
)

// clientWait is how an attempt has waited for the client's body. A read that an attempt before has left may await the client still,
// while this one waits for its target.
type clientWait struct {
	awaits   atomic.Bool  // a read waits for what the client sends next, or has failed since the client took too long
	lastRead atomic.Int64 // when the client had sent what the last read got, Unix time in nanoseconds; 0 before
}

// awaitsClient reports whether the attempt waits for the client, or has failed since the client took too long.
func (b *requestBody) awaitsClient() bool { return b.awaits.Load() && b.source.client.Awaited() }

// waited is how much of the time to a response's header, of an attempt that started then, the
// target is to blame for: none while the client was still sending, or accepting an interim response. A target that responds while the
// client is waited for has not been waited for, nor has one that had no body yet since it was given
// time to refuse it. It is called when the header has been received, or the attempt has failed.
func (b *requestBody) waited(started time.Time, toHeader time.Duration) time.Duration {
	toHeader = max(0, toHeader-b.source.interims.spent())
	if b.source.body == nil || toHeader == 0 {
		return toHeader
	}
	if b.awaitsClient() || b.expect.wasWithheld() {
		return 0
	}
	if last := b.lastRead.Load(); last != 0 {
		if sent := time.Unix(0, last).Sub(started); sent > 0 {
			return max(0, toHeader-sent)
		}
	}
	return toHeader
}

// kindOfTimeout is the kind of a failure of an exchange whose time ran out: who was waited for?
func kindOfTimeout(ctx context.Context, body *requestBody) culvert.ErrorKind {
	if body.awaitsClient() {
		return culvert.BodyTooSlow
	}
	if end, ok := ctx.Deadline(); ok && body.source.interims.covers(end) {
		return culvert.ClientGone
	}
	return culvert.Timeout
}

// timeOver returns why the time of an exchange is over, nil while it is not. A read of the client fails at the same time, and net/http's
// server may cancel ctx for that before the time does. It is not what has failed where the attempt did not wait for it.
func (b *requestBody) timeOver(ctx context.Context) error {
	cause := context.Cause(ctx)
	if errors.Is(cause, context.DeadlineExceeded) {
		return cause
	}
	end, ok := ctx.Deadline()
	if ok && !time.Now().Before(end) && !b.awaitsClient() && errors.Is(b.source.failed(), os.ErrDeadlineExceeded) {
		return errTotalTimeout
	}
	return nil
}
