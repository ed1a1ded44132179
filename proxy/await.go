package proxy

import (
	"cmp"
	"context"
	"math/rand/v2"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/errs"
)

// A request that waits for a target looks for one after pauses that double from firstPause to longestPause. Each is shorter
// by up to its half, at random, so that the requests that wait do not all reach a target at once when it is back.
const (
	firstPause   = 50 * time.Millisecond
	longestPause = time.Second
)

// pickFirst leases the target of the first attempt.
func (f *forwarding) pickFirst(ctx context.Context) *culvert.Error {
	err := f.pick(ctx)
	if err == nil || err.Kind == culvert.NoTarget && f.await(ctx) {
		return nil
	}
	return cmp.Or(left(ctx, false), err)
}

// left returns the failure of a request whose client has left while a target was looked for, nil if it has not. sent reports
// whether an attempt before has sent some of the request.
func left(ctx context.Context, sent bool) *culvert.Error {
	if ctx.Err() == nil || errs.KindOfContext(ctx) != culvert.ClientGone {
		return nil
	}
	return &culvert.Error{Kind: culvert.ClientGone, BytesSent: sent, Err: ctx.Err()}
}

// await waits until a target can be leased, for Retry.Wait at most, and not when the proxy drains. Those that the request has tried may get it again.
func (f *forwarding) await(ctx context.Context) (leased bool) {
	retry := &f.p.o.Retry
	bound := retry.Wait
	if retry.Timeout > 0 {
		bound = min(bound, retry.Timeout)
	}
	if bound == 0 {
		return false
	}
	over := f.start.Add(bound)
	queued, cancel := context.WithDeadline(ctx, over) // also of a wait in the group's queue
	defer cancel()
	for {
		left := time.Until(over)
		if left <= 0 || ctx.Err() != nil {
			return false
		}
		f.pause = min(max(firstPause, 2*f.pause), longestPause)
		if !sleep(ctx, f.p.running.Drained(), min(left, f.pause/2+rand.N(f.pause/2))) {
			return false
		}
		f.round, f.failed = len(f.tried), f.failed[:0]
		if err := f.pick(queued); err == nil || err.Kind != culvert.NoTarget {
			return err == nil
		}
	}
}

// sleep waits for d, and reports whether ctx has lasted as long and drained was not closed.
func sleep(ctx context.Context, drained <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	case <-drained:
		return false
	}
}
