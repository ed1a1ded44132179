package upstream

import (
	"container/list"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/errs"
	"github.com/culvert-go/culvert/internal/nested"
)

// queue holds the requests that wait for a target, in FIFO order. Whenever its lock is free, none
// of them can use a target that is free: the goroutine that frees one (Group.wakeQueue) serves the queue
// before it unlocks it, and a request joins and is served in one critical section.
type queue struct {
	max    int
	length atomic.Int32  // of waiting, and the requests about to join; 0 spares a request the lock
	wakes  atomic.Uint32 // the calls of wakeQueue while length was not 0

	mu       sync.Mutex
	waiting  list.List   // of *waiter
	retries  int         // the requests in waiting that have tried a target
	recovery *time.Timer // serves the queue when a target's FailTimeout has passed; nil before the first time
}

// waiter is a waiting request. The goroutine that removes it from the queue sets its result.
type waiter struct {
	q      query
	served chan struct{} // closed when the result is set

	// The result.
	m        *member
	err      error
	panicked any // the panic of a key function
}

// wait waits until a target can get one more request, and acquires it for q.
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
	case <-mustNotWait(ctx):
		err = g.fault(culvert.Busy, "no target is free for a request that must not wait")
	case <-timer.C:
		err = g.fault(culvert.Busy, "no target became free in time")
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

// mustNotWait returns a channel that is ready if a request must not wait for a target, since another
// request, which it is part of, holds one. It returns nil if the request may wait.
func mustNotWait(ctx context.Context) <-chan struct{} {
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
	return &culvert.Error{Kind: errs.KindOfContext(ctx), Target: g.o.Name, Err: ctx.Err()}
}

// join adds w to the end of the queue and serves it. It returns an error if w would have to wait and
// the queue is full.
func (g *Group) join(w *waiter) (*list.Element, error) {
	q := &g.queue
	q.length.Add(1) // before the pick: a target that is freed after that is given to the queue
	q.mu.Lock()
	defer q.mu.Unlock()
	place := q.waiting.PushBack(w)
	if len(w.q.tried) > 0 {
		q.retries++
	}
	for {
		// serve looks at one target after the other, and meanwhile one may be freed that it has found
		// full: each was full at some time, but perhaps not all at the same time.
		wakes := q.wakes.Load()
		g.serve()
		switch {
		case q.waiting.Len() <= q.max || w.hasResult():
			return place, nil
		case q.wakes.Load() == wakes:
			q.remove(place, w)
			return nil, g.fault(culvert.Busy, "every target has its MaxConns")
		}
	}
}

// hasResult reports whether w's result is set.
func (w *waiter) hasResult() bool {
	select {
	case <-w.served:
		return true
	default:
		return false
	}
}

// leave removes w from the queue, and reports whether it did: not if w has a result already.
func (g *Group) leave(place *list.Element, w *waiter) bool {
	g.queue.mu.Lock()
	defer g.queue.mu.Unlock()
	return g.queue.remove(place, w)
}

// remove removes w from q unless it has a result already, and reports whether it did. The caller holds
// q.mu.
func (q *queue) remove(place *list.Element, w *waiter) bool {
	if w.hasResult() {
		return false
	}
	q.waiting.Remove(place)
	q.length.Add(-1)
	if len(w.q.tried) > 0 {
		q.retries--
	}
	if q.waiting.Len() == 0 && q.recovery != nil {
		q.recovery.Stop()
	}
	return true
}

// wakeQueue serves the queue, since a target may have become free or unavailable.
func (g *Group) wakeQueue() {
	if g.queue.length.Load() == 0 {
		return
	}
	g.queue.wakes.Add(1)
	g.queue.mu.Lock()
	defer g.queue.mu.Unlock()
	g.serve()
}

// serve gives the free targets to the waiting requests, in their order, and fails the requests for
// which no target can become free. The caller holds g.queue.mu.
func (g *Group) serve() {
	q := &g.queue
	set, start := g.set.Load(), now()
	blocked := false // a request that may use any target can't be served, so no other one can
	for e := q.waiting.Front(); e != nil && (!blocked || q.retries > 0); {
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

// settle sets w's result, and reports false if w has to wait. A panic of a key function becomes part
// of the result: the request's own goroutine panics with it.
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
	if set.mayBecomeFree(w.q) {
		return false
	}
	if !blocked {
		if set, w.m = g.pickSteady(w.q); w.m != nil {
			return true
		}
		if set.mayBecomeFree(w.q) {
			return false
		}
	}
	cause := "no healthy target is left"
	if len(set.members) == 0 {
		cause = "the group has no targets"
	}
	w.err = g.fault(culvert.NoTarget, cause)
	return true
}

// pickSteady picks while no target can be taken out. A pick looks at one target after the other: each may have been out
// when it was looked at, though there was one that was not at any time (Options.MaxEjected).
func (g *Group) pickSteady(q query) (*targets, *member) {
	g.floor.Lock()
	defer g.floor.Unlock() // also where a key function panics
	set := g.set.Load()
	return set, set.pick(q)
}

// serveAtRecovery serves the queue again when the first of the targets that failures have taken
// out may get a request: nothing else wakes the queue then. Targets that could get one already at the
// time since are ignored: the waiting requests have tried them.
func (g *Group) serveAtRecovery(set *targets, since int64) {
	first := int64(0)
	for _, m := range set.members {
		if at := m.retryAt(); at > since && (first == 0 || at < first) {
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
