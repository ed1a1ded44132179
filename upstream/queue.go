package upstream

import (
	"container/list"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/culvert-go/culvert/internal/fault"
)

// queue is who waits for a target, in the order of coming.
type queue struct {
	max     int
	length  atomic.Int32 // for those who only want to know whether it is empty
	mu      sync.Mutex
	waiting list.List // of chan struct{}
}

// wait waits for a target that can take one more request.
func (g *Group) wait(ctx context.Context, q query) (*member, error) {
	timer := time.NewTimer(g.o.QueueTimeout)
	defer timer.Stop()
	if m, err := g.waitForTargets(ctx, q, timer); m != nil || err != nil {
		return m, err
	}
	if g.queue.length.Load() == 0 && !g.set.Load().waitsFor(q) {
		return nil, g.fault(fault.NoTarget, "no target can be asked")
	}
	place := g.queue.join()
	if place == nil {
		return nil, g.fault(fault.Busy, "every target has its MaxConns")
	}
	defer g.queue.quit(place)
	return g.waitTurn(ctx, q, place, timer)
}

// waitTurn waits until the place is the first one and a target is free.
func (g *Group) waitTurn(ctx context.Context, q query, place *list.Element, timer *time.Timer) (*member, error) {
	for {
		if g.queue.first(place) {
			set := g.set.Load()
			if m := set.pick(q); m != nil {
				return m, nil
			}
			if !set.waitsFor(q) {
				return nil, g.fault(fault.NoTarget, "no target can be asked")
			}
		}
		select {
		case <-place.Value.(chan struct{}):
		case <-timer.C:
			return nil, g.fault(fault.Busy, "no target became free in time")
		case <-ctx.Done():
			return nil, &fault.Error{Kind: fault.Ended(ctx), Target: g.o.Name, Err: ctx.Err()}
		}
	}
}

// waitForTargets waits for a source's first set.
func (g *Group) waitForTargets(ctx context.Context, q query, timer *time.Timer) (*member, error) {
	select {
	case <-g.filled:
		return nil, nil
	default:
	}
	select {
	case <-g.filled:
		return g.set.Load().pick(q), nil
	case <-timer.C:
		return nil, g.fault(fault.NoTarget, "no targets are known yet")
	case <-ctx.Done():
		return nil, &fault.Error{Kind: fault.Ended(ctx), Target: g.o.Name, Err: ctx.Err()}
	}
}

// join returns a place at the end, nil if the queue is full.
func (q *queue) join() *list.Element {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waiting.Len() >= q.max {
		return nil
	}
	q.length.Add(1)
	return q.waiting.PushBack(make(chan struct{}, 1))
}

func (q *queue) first(place *list.Element) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waiting.Front() == place
}

// quit leaves the queue and lets the one behind look: it is the first one now, or
// the place that it was called for is free still.
func (q *queue) quit(place *list.Element) {
	q.mu.Lock()
	q.waiting.Remove(place)
	q.length.Add(-1)
	q.mu.Unlock()
	q.wake()
}

// wake lets the first one look again.
func (q *queue) wake() {
	if q.length.Load() == 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if e := q.waiting.Front(); e != nil {
		select {
		case e.Value.(chan struct{}) <- struct{}{}:
		default: // called already
		}
	}
}
