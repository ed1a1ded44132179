package upstream

import (
	"container/list"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/culvert-go/culvert/internal/fault"
	"github.com/culvert-go/culvert/internal/nested"
)

// queue holds the requests that wait for a target, in FIFO order. Whenever its lock is free, none
// of them can use a target that is free: the goroutine that frees one (Group.wakeQueue) serves the queue
// before the lock is given back, and a request joins and is served in one step.
type queue struct {
	max    int
	length atomic.Int32  // of waiting, those that are about to join included; 0 spares a request the lock
	calls  atomic.Uint32 // of wakeQueue while length was not 0

	mu       sync.Mutex
	waiting  list.List   // of *waiter
	picky    int         // those of waiting that have tried a target
	recovery *time.Timer // serves the queue when a target's FailTimeout is over; nil before the first one
}

// waiter is a request that waits. The goroutine that takes it out of the queue sets its result.
type waiter struct {
	q      query
	served chan struct{} // closed when there is a result

	m        *member
	err      error
	panicked any // by a key function
}

// wait waits for a target that can take one more request.
func (g *Group) wait(ctx context.Context, q query) (*member, error) {
	timer := time.NewTimer(g.o.QueueTimeout)
	defer timer.Stop()
	if err := g.waitForTargets(ctx, timer); err != nil {
		return nil, err
	}
	w := &waiter{q: q, served: make(chan struct{})}
	place, err := g.join(w)
	if err != nil {
		return nil, err
	}
	select {
	case <-w.served:
	case <-atOnce(ctx):
		err = g.fault(fault.Busy, "no target is free for a request that must not wait")
	case <-timer.C:
		err = g.fault(fault.Busy, "no target became free in time")
	case <-ctx.Done():
		err = g.contextFault(ctx)
	}
	if g.leave(place, w) {
		return nil, err
	}
	if w.panicked != nil {
		panic(w.panicked)
	}
	return w.m, w.err
}

// atOnce returns a channel that is ready where a request must not wait for a target, nil where it may. Another request, which
// it is a part of, holds one.
func atOnce(ctx context.Context) <-chan struct{} {
	if nested.Is(ctx) {
		return ready
	}
	return nil
}

var ready = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

func (g *Group) contextFault(ctx context.Context) error {
	return &fault.Error{Kind: fault.Ended(ctx), Target: g.o.Name, Err: ctx.Err()}
}

// join puts w behind those that wait and serves the queue. It is an error if w must wait and
// there is no room.
func (g *Group) join(w *waiter) (*list.Element, error) {
	q := &g.queue
	q.length.Add(1) // before the pick: a target that is freed after it is the queue's
	q.mu.Lock()
	defer q.mu.Unlock()
	place := q.waiting.PushBack(w)
	if len(w.q.tried) > 0 {
		q.picky++
	}
	for {
		// A target may have been freed behind the pick, and its place taken before it: that every
		// target was full at some time does not mean that all were.
		calls := q.calls.Load()
		g.serve()
		switch {
		case q.waiting.Len() <= q.max || w.settled():
			return place, nil
		case q.calls.Load() == calls:
			q.remove(place, w)
			return nil, g.fault(fault.Busy, "every target has its MaxConns")
		}
	}
}

// settled reports whether w has its result.
func (w *waiter) settled() bool {
	select {
	case <-w.served:
		return true
	default:
		return false
	}
}

// leave takes w out of the queue. It reports false if w has a result already.
func (g *Group) leave(place *list.Element, w *waiter) bool {
	g.queue.mu.Lock()
	defer g.queue.mu.Unlock()
	return g.queue.remove(place, w)
}

// remove takes w out, if it has no result yet. The caller holds q.mu.
func (q *queue) remove(place *list.Element, w *waiter) bool {
	if w.settled() {
		return false
	}
	q.waiting.Remove(place)
	q.length.Add(-1)
	if len(w.q.tried) > 0 {
		q.picky--
	}
	if q.waiting.Len() == 0 && q.recovery != nil {
		q.recovery.Stop()
	}
	return true
}

// wakeQueue gives the requests that wait what may have become free.
func (g *Group) wakeQueue() {
	if g.queue.length.Load() == 0 {
		return
	}
	g.queue.calls.Add(1)
	g.queue.mu.Lock()
	defer g.queue.mu.Unlock()
	g.serve()
}

// serve gives the targets that are free to the requests that wait, the first one first, and ends
// the wait of those of which nothing can come. The caller holds g.queue.mu.
func (g *Group) serve() {
	q := &g.queue
	set, start := g.set.Load(), now()
	blocked := false // a request that may use any target can't be served, so none can
	for e := q.waiting.Front(); e != nil && (!blocked || q.picky > 0); {
		place, w := e, e.Value.(*waiter)
		e = e.Next()
		untried := len(w.q.tried) == 0
		if blocked && untried || !g.settle(set, w, blocked) {
			blocked = blocked || untried
			continue
		}
		q.remove(place, w)
		close(w.served)
	}
	if q.waiting.Len() > 0 {
		g.serveAtRecovery(set, start)
	}
}

// settle sets w's result, and reports false if w has to wait. A key function may panic: that is
// the matter of the request's own goroutine.
func (g *Group) settle(set *targets, w *waiter, blocked bool) (settled bool) {
	defer func() {
		if v := recover(); v != nil {
			w.panicked, settled = v, true
		}
	}()
	if !blocked {
		if w.m = set.pick(w.q); w.m != nil {
			return true
		}
	}
	if !set.waitsFor(w.q) {
		w.err = g.fault(fault.NoTarget, "no target can be asked")
		return true
	}
	return false
}

// serveAtRecovery serves the queue again when the first of the targets that failures have taken
// out may get a request: nothing else happens then. Those that could at the time since are left
// out: the requests that wait have tried them.
func (g *Group) serveAtRecovery(set *targets, since int64) {
	first := int64(0)
	for _, m := range set.members {
		if at := m.recovery(); at > since && (first == 0 || at < first) {
			first = at
		}
	}
	if first == 0 {
		return
	}
	after := time.Duration(first - now())
	if g.queue.recovery == nil {
		g.queue.recovery = time.AfterFunc(after, g.wakeQueue)
	} else {
		g.queue.recovery.Reset(after)
	}
}
