package upstream

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/culvert-go/culvert"
)

// firstList is a Source's first list of targets, for which requests wait.
type firstList struct {
	delivered chan struct{}           // closed when there is one
	abandoned context.Context         // ended when nothing waits for the list any more
	giveUp    context.CancelCauseFunc // ends abandoned; the first cause counts
	waiting   atomic.Int32            // the requests that wait for the list
}

// minFirstListQueue is how many requests may wait for the first list at least, even if Options.Queue is less.
const minFirstListQueue = 100

var (
	errClosed      = errors.New("the group is closed")
	errDraining    = errors.New("draining")
	errSourceEnded = errors.New("the source has ended without a list of targets")
)

func newFirstList() firstList {
	abandoned, giveUp := context.WithCancelCause(context.Background())
	return firstList{delivered: make(chan struct{}), abandoned: abandoned, giveUp: giveUp}
}

// deliver ends the wait. The caller holds Group.mu.
func (l *firstList) deliver() {
	if !l.isDelivered() {
		close(l.delivered)
	}
}

func (l *firstList) isDelivered() bool {
	select {
	case <-l.delivered:
		return true
	default:
		return false
	}
}

// waitForTargets waits for the first list of the group's Source.
func (g *Group) waitForTargets(ctx context.Context, timer *time.Timer) error {
	l := &g.first
	if l.isDelivered() {
		return nil
	}
	defer l.waiting.Add(-1)
	if n := l.waiting.Add(1); int(n) > max(minFirstListQueue, g.o.Queue) {
		return g.fault(culvert.Busy, "too many requests wait for the first list of targets")
	}
	select {
	case <-l.delivered:
		return nil
	case <-l.abandoned.Done():
		if cause := context.Cause(l.abandoned); cause != errDraining {
			return g.fault(culvert.NoTarget, cause.Error())
		}
		return g.fault(culvert.Busy, errDraining.Error())
	case <-timer.C:
		return g.fault(culvert.NoTarget, "no targets are known yet")
	case <-ctx.Done():
		return g.contextFault(ctx)
	}
}
