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

	"github.com/culvert-go/culvert/internal/fault"
	"github.com/culvert-go/culvert/internal/gate"
)

// Group is a named set of targets with their health. It is safe for concurrent
// use, and several handlers may share one. Close it when it is no longer needed.
type Group struct {
	o         Options
	transport http.RoundTripper
	owned     *Transport // nil if the caller brought its own
	closed    atomic.Bool

	set   atomic.Pointer[targets]
	gate  gate.Gate // the requests and tunnels in flight, those that wait included
	queue queue

	mu     sync.Mutex // guards what follows, and changes of the set
	states map[string]*state
	checks checks
	first  firstList

	ctx     context.Context // ends with Close
	end     context.CancelFunc
	running sync.WaitGroup
}

// New checks the options and the targets and returns the group. An error names
// the group and the target. With Options.Source no targets are given here.
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
	g.ctx, g.end = context.WithCancel(context.Background())
	g.checks.stop = map[string]context.CancelFunc{}
	g.transport = o.Transport
	if g.transport == nil {
		g.owned = newTransport(o)
		g.transport = g.owned
	}
	g.set.Store(&targets{})
	if o.Source != nil {
		if err := o.Balance.check(nil); err != nil {
			return fail(err)
		}
		g.running.Go(g.follow)
		return g, nil
	}
	if err := g.Set(list...); err != nil {
		g.end()
		return nil, err
	}
	return g, nil
}

// Name returns Options.Name.
func (g *Group) Name() string { return g.o.Name }

// Scheme returns "http" or "https".
func (g *Group) Scheme() string { return g.o.Scheme }

// Transport returns what runs exchanges with the targets.
func (g *Group) Transport() http.RoundTripper { return g.transport }

// HeaderBounds returns Options.HeaderTimeout, 0 for none, and Options.MaxHeaderBytes. The group's own transport bounds the header of a
// response by them. Where proxy.Options.Transport is another one, without such a method, package proxy bounds by them what
// net/http's does not: the headers of all interim responses together, and, for a client that expects a 100 Continue, the
// time of a header that has begun. When the header has to begin and how long it may be is that transport's matter, by
// ResponseHeaderTimeout and MaxResponseHeaderBytes of an http.Transport.
func (g *Group) HeaderBounds() (timeout time.Duration, size int64) {
	return max(0, g.o.HeaderTimeout), g.o.MaxHeaderBytes
}

// TLSConfig returns Options.TLSConfig.
func (g *Group) TLSConfig() *tls.Config { return g.o.TLSConfig }

// Set replaces the targets. Requests in flight continue with theirs, and count for an address by its options of
// now; what is known of an address that stays, or comes again within ten minutes, is kept. On an error, which
// names the group and the target, nothing changes.
func (g *Group) Set(list ...Target) error {
	fail := func(err error) error { return fmt.Errorf("upstream %q: %w", g.o.Name, err) }
	full := make([]Target, len(list))
	for i, t := range list {
		var err error
		if full[i], err = t.withDefaults(); err == nil {
			err = g.checkTLS(full[i])
		}
		if err != nil {
			return fail(err)
		}
	}
	if err := g.o.Balance.check(full); err != nil {
		return fail(err)
	}
	if !slices.ContainsFunc(full, func(t Target) bool { return !t.Backup }) {
		return fail(errors.New("no target that is not a backup"))
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.install(full)
	return nil
}

// install makes list the set. The caller holds g.mu.
func (g *Group) install(list []Target) {
	s := newTargets(list, g.o, g.set.Load(), g.state)
	for _, m := range s.members {
		m.current.Store(m) // before a request can have m
	}
	g.set.Store(s)
	g.forget(s)
	g.checkAll(s)
	g.first.deliver()
	g.wakeQueue()
}

// state returns what is known of an address.
func (g *Group) state(addr string) *state {
	s := g.states[addr]
	if s == nil {
		s = &state{}
		g.states[addr] = s
	}
	return s
}

// memory is how long a failing address that has left the set is remembered.
const memory = 10 * time.Minute

// forget drops the states of addresses that are gone, unless something runs there
// still or the address might soon come back sick.
func (g *Group) forget(s *targets) {
	at := now()
	for addr, st := range g.states {
		switch {
		case s.has(st):
			st.left = 0
			continue
		case st.left == 0:
			st.left = at
		}
		remembered := at-st.left < int64(memory) && st.notable()
		if st.inFlight.Load() == 0 && !remembered {
			delete(g.states, addr)
		}
	}
}

// Drain refuses further requests, and those that wait for the first list of Options.Source (503), and returns when those in flight, tunnels
// included, have ended, or with ctx's error when that ends before.
func (g *Group) Drain(ctx context.Context) error {
	g.first.giveUp(errDraining)
	return g.gate.Drain(ctx)
}

// Close ends the checks and the source, waits for them, and closes idle connections. Exchanges
// that run are not touched, and their connections are closed behind them; Drain waits for them. Requests that wait for the first
// list of Options.Source are refused (503). A transport that the caller brought is left alone.
func (g *Group) Close() error {
	g.first.giveUp(errClosed)
	g.mu.Lock()
	g.end() // no checker starts afterwards
	g.mu.Unlock()
	g.running.Wait()
	if g.owned != nil {
		g.closed.Store(true)
		g.owned.closer.start()
	}
	return nil
}

// fault returns an error of the whole group.
func (g *Group) fault(kind fault.Kind, cause string) *fault.Error {
	e := &fault.Error{Kind: kind, Target: g.o.Name, Err: errors.New(cause)}
	if kind == fault.Busy {
		e.RetryAfter = g.o.RetryAfter
	}
	return e
}
