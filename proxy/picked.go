package proxy

import (
	"context"
	"errors"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/errs"
	"github.com/culvert-go/culvert/internal/http1"
	"github.com/culvert-go/culvert/upstream"
)

// headerBounds is a transport, or the group in its place, that bounds the header of a response.
type headerBounds interface {
	HeaderBounds() (timeout time.Duration, size int64)
}

// exchanges are those with the targets of one group.
type exchanges struct {
	own       http1Exchange
	transport transportExchange
}

// over returns the exchanger for the targets of g.
func (e *exchanges) over(o *Options, g *upstream.Group) exchanger {
	t := o.Transport
	if t == nil {
		t = g.Transport()
	}
	bounds, ok := t.(headerBounds)
	if !ok {
		bounds = g
	}
	e.transport = transportExchange{o, t, bounds}
	pool := http1.PoolOf(t)
	if pool == nil {
		return &e.transport
	}
	e.own = http1Exchange{o: o, pool: pool, fallback: &e.transport}
	return &e.own
}

// guarded is an upstream or a transport whose connections may be restricted to some addresses (upstream.Options.AllowAddr).
type guarded interface {
	AllowAddr() func(netip.Addr) bool
}

func isGuarded(v any) bool {
	g, ok := v.(guarded)
	return ok && g.AllowAddr() != nil
}

var errUnguarded = errors.New("proxy: Options.Transport has no AllowAddr, and the upstream has one: its connections would not be bound by it")

// checkGuard returns an error if the connections to the targets of an upstream are restricted, and those of Transport are not.
func (o *Options) checkGuard(upstream any) error {
	if o.Transport != nil && isGuarded(upstream) && !isGuarded(o.Transport) {
		return errUnguarded
	}
	return nil
}

var (
	errNoLease  = errors.New("proxy: Options.Upstream returned neither a target nor an error")
	errAllTried = errors.New("each target was tried")
)

// leaseOf leases a target that is not among tried.
func (f *forwarding) leaseOf(ctx context.Context, tried []upstream.Lease) (upstream.Lease, *culvert.Error) {
	lease, err := f.p.o.Upstream.Pick(ctx, f.out.In, tried...)
	if err != nil {
		failure := errs.As(err)
		if failure == nil {
			failure = &culvert.Error{Kind: culvert.Internal, Err: err}
		}
		lease.Done(unused) // there is none, unless a Picker breaks its contract: the target would have the request for ever
		return upstream.Lease{}, failure
	}
	if f.p.group != nil {
		return lease, nil
	}
	if lease == (upstream.Lease{}) {
		return lease, &culvert.Error{Kind: culvert.Internal, Err: errNoLease}
	}
	again := func(l upstream.Lease) bool { return l.Group() == lease.Group() && l.Addr() == lease.Addr() }
	if slices.ContainsFunc(tried, again) { // without this an exchange would not end
		lease.Done(unused)
		return upstream.Lease{}, &culvert.Error{Kind: culvert.NoTarget, Target: lease.Group().Name(), RetryAfter: time.Second, Err: errAllTried}
	}
	return lease, nil
}

// unused is the outcome of a lease that was not used, or of an attempt in which a hook has panicked: that says nothing about the
// target.
var unused = upstream.Outcome{Err: &culvert.Error{Kind: culvert.ClientGone}}

// joinPath returns the path of a request, as it is sent, behind the base path of a target.
func joinPath(base, path string) string {
	if base == "" || !strings.HasPrefix(path, "/") {
		return path
	}
	return base + path
}

// direct has u lead to the target of lease, and reports whether that needs the lease's context.
func (f *forwarding) direct(u *url.URL, lease upstream.Lease) (byContext bool) {
	scheme, base, byContext := lease.Way()
	u.Host, u.Opaque = lease.Host(), joinPath(base, f.path)
	if f.scheme == "" || f.p.group != nil && f.scheme == f.p.group.Scheme() { // or else Options.Rewrite has chosen another one
		u.Scheme = scheme
	}
	return byContext
}

// reach directs the request to the target of lease.
func (f *forwarding) reach(lease upstream.Lease) *culvert.Error {
	byContext := f.direct(f.out.Out.URL, lease)
	_, upgrade := f.exchange.(upgradeExchange)
	picked := f.p.group == nil
	if needed := upgrade && (picked || f.out.Out.URL.Scheme == "https") || byContext; needed || f.leased {
		f.leased = true // a target to which the host alone leads must not be reached as the one before
		f.out.Out = f.out.Out.WithContext(lease.Context(f.out.Out.Context()))
	}
	if f.p.group != nil {
		return nil
	}
	if f.record != nil {
		f.record.Upstream = lease.Group().Name()
	}
	if !upgrade {
		if err := f.p.o.checkGuard(lease.Group()); err != nil {
			return &culvert.Error{Kind: culvert.Internal, Err: err}
		}
		e := &f.exchanges
		if len(f.tried) > 0 {
			e = new(exchanges) // an upload of the attempt before may not have ended
		}
		f.exchange = e.over(&f.p.o, lease.Group())
	}
	if f.scheme == "" {
		return nil
	}
	scheme, _, _ := lease.Way()
	if err := checkScheme(f.scheme, scheme, f.exchange); err != nil {
		return &culvert.Error{Kind: culvert.Internal, Err: err}
	}
	return nil
}
