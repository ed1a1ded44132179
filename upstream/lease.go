package upstream

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/errs"
	"github.com/culvert-go/culvert/internal/nested"
)

// Lease is a target that was picked for a request. Its holder must call Done when
// the exchange, or its tunnel, has ended. The zero Lease, which Pick returns with an
// error, has no target: its Done does nothing, and its other methods panic.
type Lease struct {
	g     *Group
	m     *member
	grant *grant
	n     uint64 // grant's number when this lease was made
}

// grant distinguishes a held lease from a released one without an allocation for each: one lease after
// the other uses it, each with another number.
type grant struct{ n atomic.Uint64 }

var grants = sync.Pool{New: func() any { return new(grant) }}

func newLease(g *Group, m *member) Lease {
	grant := grants.Get().(*grant)
	return Lease{g, m, grant, grant.n.Load()}
}

// release ends l, and reports whether it was held until now: the first call counts, of all copies of l.
func (l Lease) release() bool {
	if l.grant == nil || !l.grant.n.CompareAndSwap(l.n, l.n+1) {
		return false
	}
	grants.Put(l.grant)
	return true
}

// Pick picks a target for r that is not among the targets of tried, r's earlier
// leases. It first waits for the first list of Options.Source, and then, if all
// targets have their MaxConns, in the queue, if there is one. ctx bounds both waits.
// r must not be nil if Options.Balance is Hash, HashModulo, IPHash or Sticky, which
// use it. A panic of a key function is passed on to the caller.
//
// An error is a *culvert.Error. Its kind is NoTarget if no target is available, or Busy if
// none may get the request now; if ctx has ended, it is the kind of ctx's error.
func (g *Group) Pick(ctx context.Context, r *http.Request, tried ...Lease) (Lease, error) {
	n, open := g.gate.Enter()
	if !open {
		return Lease{}, g.fault(culvert.Busy, "draining")
	}
	if g.o.MaxInFlight > 0 && n > int64(g.o.MaxInFlight) {
		g.gate.Leave()
		return Lease{}, g.fault(culvert.Busy, "too many requests in flight")
	}
	var m *member
	defer func() {
		if m == nil { // no target was found, or a key function has panicked
			g.gate.Leave()
		}
	}()
	q := query{r: r, tried: tried}
	if len(tried) > 0 {
		q.beside = nested.IsBeside(ctx)
	}
	if q.beside && g.set.Load().binds(r) {
		return Lease{}, g.fault(culvert.NoTarget, "the balance binds the request to one target")
	}
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

// OnTrial reports whether failures have taken the target out, and this is the request that was let through to find whether it
// is back (Target.MaxFails): it is out for as long again if the outcome does not count.
func (l Lease) OnTrial() bool { return l.m.failing() }

// Addr returns the target's address, which is its Target's Addr.
func (l Lease) Addr() string { return l.m.Addr }

// Host returns the host for a URL that leads to the target over the group's
// transport: the address, or a made-up name for a unix socket, which works only with
// the context that Context returns.
func (l Lease) Host() string { return l.m.host }

// Context returns a context with which the group's Transport and its method Dial reach the target by its Host, and the
// function Dial without it. Transport and method need it only if the target is a unix socket, or has a
// TLSConfig or ServerName of its own: a name alone, for
// instance one that a client sends, never leads to a socket.
func (l Lease) Context(ctx context.Context) context.Context {
	return context.WithValue(withReach(ctx, l.m.addr), leaseKey{}, l)
}

// Cookie returns the cookie to send to the client of r, so that its next requests get
// the same target (Sticky); nil if none is needed.
func (l Lease) Cookie(r *http.Request) *http.Cookie {
	if c, ok := l.m.picker.(cookieGiver); ok {
		return c.cookie(r, l.m)
	}
	return nil
}

// Outcome is the result of an exchange, for the health of its target.
type Outcome struct {
	// Status is the status code of the response, 0 if there was none.
	Status int
	// TimeToHeader is the time to the response's header.
	TimeToHeader time.Duration
	// Err is why the exchange failed; nil means that it did not. It does not count for the
	// target, neither as a failure nor as a success, if its kind is not in Options.FailKinds, if it is a *culvert.Error that is the client's fault or Internal, or if a
	// connection could not be made since this host has no file descriptor, memory or local
	// port left.
	Err error
}

// Done releases the target and counts the outcome for its health, by its current options, which may
// have changed since Pick (Group.Set). Only the first call counts, of all copies of l; further ones do
// nothing. Done is safe for concurrent use.
func (l Lease) Done(o Outcome) {
	if !l.release() {
		return
	}
	m := l.m.current.Load()
	switch {
	case l.g.isFailure(o):
		m.failed(l.g)
		if p, ok := m.picker.(failureCounter); ok {
			p.targetFailed(m)
		}
	case o.Err == nil:
		m.countSuccess(&l.g.o)
		m.succeeded(l.g)
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

// Succeeded counts a success for the target's health and keeps the target: for what may last long, such as a connection of TCP, so
// that a target that failures have taken out is back at once, not when the connection ends. Done then counts the rest of it as
// another outcome. It does nothing if Done has been called, or for the zero Lease.
func (l Lease) Succeeded() {
	if l.grant == nil || l.grant.n.Load() != l.n {
		return
	}
	m := l.m.current.Load()
	m.countSuccess(&l.g.o)
	m.succeeded(l.g)
}

// isFailure reports whether o counts as a failure of its target.
func (g *Group) isFailure(o Outcome) bool {
	if o.Err != nil {
		e := errs.As(o.Err)
		return (e == nil && !errs.Local(o.Err) || e != nil && e.TargetSide()) && g.countsKind(e)
	}
	return slices.Contains(g.o.FailStatuses, o.Status) || g.o.FailLatency > 0 && o.TimeToHeader >= g.o.FailLatency
}

// countsKind reports whether errors of the kind of e count; nil is an error of another type.
func (g *Group) countsKind(e *culvert.Error) bool {
	kind := culvert.Unknown
	if e != nil {
		kind = e.Kind
	}
	return g.o.FailKinds == nil || slices.Contains(g.o.FailKinds, kind)
}
