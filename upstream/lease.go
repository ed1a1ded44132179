package upstream

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/culvert-go/culvert/internal/fault"
	"github.com/culvert-go/culvert/internal/http1"
)

// Lease is a target that was picked for a request. Its holder must call Done when
// the exchange, or its tunnel, has ended. The zero Lease, which Pick returns with an error, has no target: its Done does
// nothing, and its other methods panic.
type Lease struct {
	g     *Group
	m     *member
	grant *grant
	n     uint64 // grant's number when this lease was made
}

// grant tells a lease that is held from one that was given back, at no memory for each: it serves one lease after the
// other, and has another number for each.
type grant struct{ n atomic.Uint64 }

var grants = sync.Pool{New: func() any { return new(grant) }}

func newLease(g *Group, m *member) Lease {
	grant := grants.Get().(*grant)
	return Lease{g, m, grant, grant.n.Load()}
}

// end reports whether l was held until now.
func (l Lease) end() bool {
	if l.grant == nil || !l.grant.n.CompareAndSwap(l.n, l.n+1) {
		return false
	}
	grants.Put(l.grant)
	return true
}

// Pick picks a target for r that is not among tried, the leases that r had
// before. It waits in the queue, if there is one, where all targets have their
// MaxConns, and before that for the first list of Options.Source. ctx bounds both. r must not be nil where Options.Balance
// looks at it, as Hash, HashModulo, IPHash and Sticky do.
//
// An error is a *fault.Error, which package proxy offers as Error: NoTarget if
// nobody can be asked, Busy if nobody may be for now.
func (g *Group) Pick(ctx context.Context, r *http.Request, tried ...Lease) (Lease, error) {
	n, open := g.gate.Enter()
	if !open {
		return Lease{}, g.fault(fault.Busy, "draining")
	}
	if g.o.MaxInFlight > 0 && n > int64(g.o.MaxInFlight) {
		g.gate.Leave()
		return Lease{}, g.fault(fault.Busy, "too many requests in flight")
	}
	var m *member
	defer func() {
		if m == nil { // nobody was found, or a key function has panicked
			g.gate.Leave()
		}
	}()
	q := query{r: r, tried: tried}
	if g.queue.length.Load() == 0 {
		m = g.set.Load().pick(q)
	}
	if m == nil {
		var err error
		if m, err = g.wait(ctx, q); err != nil {
			return Lease{}, err
		}
	}
	return newLease(g, m), nil
}

// Addr returns the target's address, as its Target has it.
func (l Lease) Addr() string { return l.m.Addr }

// Host returns what to put into a URL to reach the target through the group's
// transport: the address, or a name that stands for a unix socket, which leads
// there with the context of Context alone.
func (l Lease) Host() string { return l.m.host }

// Context returns a context with which the group's Transport and Dial reach the
// target by its Host. It is ctx unless the target is a unix socket: no name, from
// wherever it comes, stands for a socket by itself.
func (l Lease) Context(ctx context.Context) context.Context { return withSocket(ctx, l.m.addr) }

// ConnAddr is what package proxy gets connections of a Transport's Pool by.
func (l Lease) ConnAddr() http1.Addr { return l.m.addr }

// Cookie returns the cookie by which the client comes back to the target (Sticky);
// nil if none is needed.
func (l Lease) Cookie(r *http.Request) *http.Cookie {
	if c, ok := l.m.picker.(cookieGiver); ok {
		return c.cookie(r, l.m)
	}
	return nil
}

// Outcome is what an exchange has told about its target.
type Outcome struct {
	// Status is the status of the answer, 0 if there was none.
	Status int
	// Header is the time to the answer's head.
	Header time.Duration
	// Err says why the exchange failed. A *fault.Error that is the client's fault or
	// Internal says nothing about the target, nor does an error of a connection that could
	// not be made since this host has no descriptor, memory or local port left.
	Err error
}

// Done gives the target back and counts the outcome for its health, by its options of now: they may have changed
// since Pick (Group.Set). The first call counts, of all copies of l; further ones do nothing.
func (l Lease) Done(o Outcome) {
	if !l.end() {
		return
	}
	m := l.m.current.Load()
	switch {
	case l.g.failure(o):
		m.failed()
		if p, ok := m.picker.(failureCounter); ok {
			p.targetFailed(m)
		}
	case o.Err == nil:
		m.succeeded()
	}
	m.inFlight.Add(-1)
	if p, ok := m.picker.(releaser); ok {
		p.released(m)
	}
	l.g.gate.Leave()
	l.g.wakeQueue()
	if l.g.closed.Load() {
		l.g.owned.closer.start()
	}
}

func (g *Group) failure(o Outcome) bool {
	if o.Err != nil {
		e := fault.As(o.Err)
		return e == nil && !fault.Local(o.Err) || e != nil && e.TargetSide()
	}
	return slices.Contains(g.o.FailStatuses, o.Status) || g.o.FailLatency > 0 && o.Header >= g.o.FailLatency
}
