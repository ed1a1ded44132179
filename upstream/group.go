package upstream

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/gate"
)

// Group is a named set of targets with their health. It is safe for concurrent
// use by multiple goroutines, and several handlers may share one. Close it when it
// is no longer needed.
type Group struct {
	o         Options
	transport http.RoundTripper
	owned     *Transport // nil if Options.Transport is set
	checkOwn  *Transport // the one of checks; nil if they use transport

	checkTransport http.RoundTripper
	closed         atomic.Bool

	set   atomic.Pointer[targets]
	gate  gate.Gate // the requests and tunnels in flight, waiting ones included
	queue queue

	floor sync.Mutex // guards the set, and the health of its members, against changes that Options.MaxEjected forbids together

	mu     sync.Mutex // guards states, checks and the delivery of first, and serialises changes of set
	states map[string]*state
	checks checks
	first  firstList

	ctx     context.Context // canceled by Close
	cancel  context.CancelFunc
	running sync.WaitGroup
}

// New returns a Group of the targets in list. It returns an error, which names the
// group and the target, if an option or a target is invalid. With Options.Source
// list must be empty; otherwise at least one target must not be a backup, unless the group is to be empty for now:
// it refuses requests then (503, with Options.RetryAfter) until Set gives it targets.
func New(o Options, list ...Target) (*Group, error) {
	name := o.Name
	fail := func(err error) (*Group, error) { return nil, fmt.Errorf("upstream %q: %w", name, err) }
	o, err := o.withDefaults()
	if err != nil {
		return fail(err)
	}
	if o.Source != nil && len(list) > 0 {
		return fail(errors.New("targets are given beside Options.Source"))
	}
	g := &Group{o: o, states: map[string]*state{}, first: newFirstList()}
	g.queue.max = o.Queue
	g.ctx, g.cancel = context.WithCancel(context.Background())
	g.checks.stop = map[string]context.CancelFunc{}
	g.transport = o.Transport
	if g.transport == nil {
		g.owned = newTransport(o)
		g.transport = g.owned
	}
	g.checkTransport = g.transport
	if g.checkOwn = o.checkTransport(); g.checkOwn != nil {
		g.checkTransport = g.checkOwn
	}
	g.set.Store(&targets{})
	if o.Source != nil {
		if err := o.Balance.check(nil); err != nil {
			return fail(err)
		}
		g.running.Go(g.runSource)
		return g, nil
	}
	if err := g.Set(list...); err != nil {
		g.cancel()
		return nil, err
	}
	return g, nil
}

// Name returns Options.Name.
func (g *Group) Name() string { return g.o.Name }

// Scheme returns "http" or "https".
func (g *Group) Scheme() string { return g.o.Scheme }

// Transport returns the transport that runs exchanges with the targets: Options.Transport,
// or the group's own.
func (g *Group) Transport() http.RoundTripper { return g.transport }

// HeaderBounds returns Options.HeaderTimeout, 0 for no bound, and Options.MaxHeaderBytes. The group's
// own transport bounds the header of a response by them.
//
// If proxy.Options.Transport is another transport, without such a method, package proxy uses them to
// bound what net/http's transport does not: the headers of all interim responses together, and, for a
// client that expects a 100 Continue, the time of a header that has begun. That transport itself bounds
// the time until the header begins, and its size: an http.Transport by ResponseHeaderTimeout and
// MaxResponseHeaderBytes.
func (g *Group) HeaderBounds() (timeout time.Duration, size int64) {
	return max(0, g.o.HeaderTimeout), g.o.MaxHeaderBytes
}

// TLSConfig returns Options.TLSConfig.
func (g *Group) TLSConfig() *tls.Config { return g.o.TLSConfig }

// Set replaces the targets. Requests in flight continue with their targets, and their outcomes count by
// the current options of the address. The health of an address is kept, even if it is removed and added
// again within ten minutes. Without any target the group refuses requests (503). If Set returns an error,
// which names the group and the target, nothing has changed.
func (g *Group) Set(list ...Target) error {
	fail := func(err error) error { return fmt.Errorf("upstream %q: %w", g.o.Name, err) }
	full := make([]Target, len(list))
	for i, t := range list {
		var err error
		if full[i], err = t.withDefaults(&g.o); err == nil {
			err = g.checkTLS(full[i])
		}
		if err == nil {
			err = g.o.checkSocket(full[i])
		}
		if err != nil {
			return fail(err)
		}
	}
	if err := checkSameReach(full); err != nil {
		return fail(err)
	}
	if err := g.o.Balance.check(full); err != nil {
		return fail(err)
	}
	if len(full) > 0 && !slices.ContainsFunc(full, func(t Target) bool { return !t.Backup }) {
		return fail(errors.New("no target that is not a backup"))
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.install(full)
	return nil
}

// install makes list the group's set. The caller holds g.mu.
func (g *Group) install(list []Target) {
	s := newTargets(list, g.o, g.set.Load(), g.state)
	for _, m := range s.members {
		m.current.Store(m) // before a request can pick m
	}
	g.replace(s)
	g.forgetRemoved(s)
	g.updateCheckers(s)
	g.first.deliver()
	g.wakeQueue()
}

// state returns the state of a target's key, a new one if there is none. The caller holds g.mu.
func (g *Group) state(key string) *state {
	s := g.states[key]
	if s == nil {
		s = &state{}
		g.states[key] = s
	}
	return s
}

// rememberFor is how long the state of a failing address is kept after it has left the set.
const rememberFor = 10 * time.Minute

// forgetRemoved deletes the states of addresses that are not in s, unless they have
// requests in flight or failures to be remembered. The caller holds g.mu.
func (g *Group) forgetRemoved(s *targets) {
	at := now()
	for key, st := range g.states {
		switch {
		case s.has(st):
			st.removedAt = 0
			continue
		case st.removedAt == 0:
			st.removedAt = at
		}
		remembered := at-st.removedAt < int64(rememberFor) && (st.drained || st.hasFailed())
		if st.inFlight.Load() == 0 && !remembered {
			delete(g.states, key)
		}
	}
}

// Drain refuses further requests, and those that wait for the first list of Options.Source (503). It
// returns when the requests in flight, tunnels included, have ended, or with ctx's error if ctx ends
// before.
func (g *Group) Drain(ctx context.Context) error {
	g.first.giveUp(errDraining)
	return g.gate.Drain(ctx)
}

// Close stops the checks and the source, waits for them, and closes idle connections. Exchanges
// in flight continue, and their connections are closed when they end; Drain waits for them. Requests
// that wait for the first list of Options.Source are refused (503). Close does not close idle
// connections of Options.Transport. It always returns nil.
func (g *Group) Close() error {
	g.first.giveUp(errClosed)
	g.mu.Lock()
	g.cancel() // no checker starts afterwards
	g.mu.Unlock()
	g.running.Wait()
	if g.checkOwn != nil {
		g.checkOwn.closer.start()
	}
	if g.owned != nil {
		g.closed.Store(true)
		g.owned.closer.start()
	}
	return nil
}

// fault returns an error of the group as a whole.
func (g *Group) fault(kind culvert.ErrorKind, cause string) *culvert.Error {
	e := &culvert.Error{Kind: kind, Target: g.o.Name, Err: errors.New(cause)}
	if kind == culvert.Busy || kind == culvert.NoTarget {
		e.RetryAfter = g.o.RetryAfter
	}
	return e
}
