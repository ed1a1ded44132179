package simulate

import (
	"context"
	"errors"
	"iter"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/upstream"
)

// addDynamic chooses histories whose requests name their targets (upstream.Dynamic), another one for each attempt. Some name an
// address that Options.AllowAddr refuses.
func (p *Plan) addDynamic(c *Choices) {
	if !c.Bool(10) || p.Gateway.Strict {
		return
	}
	g := &p.Gateway
	g.Dynamic, g.Picker, g.Check, g.MaxInFlight, p.Upstream.SlowStart = true, false, false, 0, 0
	g.MaxTargets = Pick(c, 0, 0, 1, 2)
	p.Changes = slices.DeleteFunc(p.Changes, func(c ChangePlan) bool { return c.Kind != CloseTunnels && c.Kind != DrainGroup })
	for i := range p.Upstream.Targets {
		p.Upstream.Targets[i].Down = false
	}
	if !c.Bool(2) {
		return
	}
	g.Transport = false // that of the group is not guarded
	for i := range p.Clients {
		for k := range p.Clients[i].Requests {
			if e := &p.Clients[i].Requests[k]; p.Clients[i].Kind != Malformed && e.Kube == KubeNothing && c.Bool(4) {
				e.Guarded = Pick(c, "127.0.0.1:", "[::ffff:127.0.0.1]:")
			}
		}
	}
}

// population is the state that a Group and a Dynamic report.
type population interface {
	Targets() iter.Seq[upstream.Status]
	InFlight() int
	Waiting() int
	Drain(ctx context.Context) error
}

// population returns the group, or the targets that requests have named.
func (g *gateway) population() population {
	if g.dynamic != nil {
		return g.dynamic.open
	}
	return g.group
}

// dynamic is the gateway's Picker of targets that requests name: open ones, and guarded ones, of which none is allowed. That one has
// a dialler of its own, since Options.AllowAddr looks at the addresses of sockets.
type dynamic struct {
	g             *gateway
	open, guarded *upstream.Dynamic
	probes        atomic.Int64
	refused       atomic.Int64 // calls of AllowAddr
}

// namedKey is the context key of the target that a request names.
type namedKey struct{}

// newDynamic makes the Picker, with the options of the group that go with it.
func newDynamic(g *gateway, o upstream.Options) (d *dynamic, err error) {
	d = &dynamic{g: g}
	o.Balance, o.Check, o.MaxInFlight, o.SlowStart = nil, nil, 0, 0
	choose := func(r *http.Request) (upstream.Target, error) {
		return r.Context().Value(namedKey{}).(upstream.Target), nil
	}
	d.open, err = upstream.NewDynamic(upstream.DynamicOptions{Choose: choose, Group: o, MaxTargets: g.plan.Gateway.MaxTargets})
	if err != nil {
		return nil, err
	}
	o.DialContext, o.AllowAddr, o.Protocol = nil, d.allow, upstream.HTTP1
	d.guarded, err = upstream.NewDynamic(upstream.DynamicOptions{Choose: choose, Group: o})
	return d, err
}

// allow is Options.AllowAddr. An IPv4 address is given as such.
func (d *dynamic) allow(addr netip.Addr) bool {
	d.refused.Add(1)
	if addr.Is4In6() {
		d.g.journal.Break("guard", "AllowAddr is called with %v", addr)
	}
	return !addr.Unmap().IsLoopback()
}

// Pick implements upstream.Picker.
func (d *dynamic) Pick(ctx context.Context, r *http.Request, tried ...upstream.Lease) (upstream.Lease, error) {
	t, guarded := d.target(r)
	from := d.open
	if guarded {
		from = d.guarded
	}
	named := r.WithContext(context.WithValue(r.Context(), namedKey{}, t))
	lease, err := from.Pick(ctx, named, tried...)
	if err == nil {
		if got := lease.Target(); got.Addr != t.Addr || got.Path != basePath(t.Path) || got.Labels["addr"] != t.Addr || lease.Addr() != t.Addr {
			d.g.journal.Break("dynamic", "%s names %+v and gets %+v", r.URL.Path, t, got)
		}
	}
	return lease, err
}

// basePath returns the path of a target as a lease has it.
func basePath(path string) string {
	if n := len(path); n > 0 && path[n-1] == '/' {
		return path[:n-1]
	}
	return path
}

// target returns the target that a request names: each attempt another one, and each probe, too.
func (d *dynamic) target(r *http.Request) (t upstream.Target, guarded bool) {
	p, n := passageOf(r.Context()), int64(0)
	if p != nil {
		d.g.journal.mu.Lock()
		e := d.g.journal.exchanges[max(p.Token, p.Lists)]
		n = int64(max(p.Token, p.Lists)) + int64(len(p.Named))
		if e != nil && e.Guarded != "" {
			t, guarded = upstream.Target{Addr: e.Guarded + strconv.Itoa(untouchable.port())}, true
		}
		d.g.journal.mu.Unlock()
	}
	if p == nil || p.Token+p.Lists == 0 {
		n = d.probes.Add(1)
	}
	if !guarded {
		t = d.g.plan.target(int(n) % len(d.g.plan.Targets))
		t.Backup = false
	}
	t.Labels = map[string]string{"addr": t.Addr}
	if p != nil {
		d.g.journal.mu.Lock()
		p.Named = append(p.Named, t.Addr)
		d.g.journal.mu.Unlock()
	}
	return t, guarded
}

// close ends the Picker.
func (d *dynamic) close() {
	_ = d.open.Close()
	_ = d.guarded.Close()
	if n := d.guarded.InFlight() + d.open.InFlight(); n > 0 {
		d.g.journal.Break("counts", "%d requests for named targets are in flight when all have ended", n)
	}
	d.g.journal.manners.Add("gateway: AllowAddr refuses an address", int(d.refused.Load()))
}

// listenerOfNone is a listener that no connection must reach.
type listenerOfNone struct {
	once    sync.Once
	l       net.Listener
	reached atomic.Int64
}

// untouchable is where guarded requests would be sent. It is not of a history's network, since AllowAddr guards sockets alone.
var untouchable listenerOfNone

// listen is called before the histories: a goroutine of a bubble must not wait for a socket.
func (l *listenerOfNone) listen() {
	l.once.Do(func() {
		var err error
		if l.l, err = net.Listen("tcp4", "127.0.0.1:0"); err != nil {
			panic(err)
		}
		go func() {
			for {
				c, err := l.l.Accept()
				if err != nil {
					return
				}
				l.reached.Add(1)
				c.Close()
			}
		}()
	})
}

func (l *listenerOfNone) port() int { return l.l.Addr().(*net.TCPAddr).Port }

// named: targets see only requests that name them, and those that AllowAddr refuses are seen by none and fail with Forbidden.
func (r *ruler) named() {
	if !r.w.plan.Gateway.Dynamic {
		return
	}
	if r.e.Guarded != "" && len(r.sights) > 0 {
		r.fail("guard", "%s saw a request that names %s", r.sights[0].Target, r.e.Guarded)
	}
	for _, p := range r.w.journal.passages {
		if p.Token != r.e.Token {
			continue
		}
		for _, s := range r.sights {
			if !slices.Contains(p.Named, s.Target) {
				r.fail("dynamic", "%s saw it, it names %v", s.Target, p.Named)
			}
		}
		for _, a := range p.Attempts {
			var e *culvert.Error
			switch {
			case !slices.Contains(p.Named, a.Target):
				r.fail("dynamic", "an attempt on %s, it names %v", a.Target, p.Named)
			case r.e.Guarded == "":
			case a.Err == nil || errors.As(a.Err, &e) && e.Kind != culvert.Forbidden && e.Kind != culvert.Internal && !e.ClientSide() && !p.TimedOut:
				r.fail("guard", "an attempt on %s has the status %d and the error %v", a.Target, a.Status, a.Err)
			}
		}
	}
}

// checkDynamic: a target that a request names is never taken out, no more are remembered than may be, and none that is refused is
// reached. The caller holds the journal's mutex.
func (w *world) checkDynamic() {
	g := &w.plan.Gateway
	if !g.Dynamic {
		return
	}
	if n := untouchable.reached.Load(); n > 0 {
		w.journal.breakAt(w.journal.now(), "guard", "%d connections were made to an address that AllowAddr refuses", n)
	}
	for _, s := range w.journal.samples {
		if most := g.MaxTargets; most > 0 && len(s.targets) > most {
			w.journal.breakAt(s.at, "dynamic", "%d targets are remembered, MaxTargets is %d", len(s.targets), most)
		}
		for _, t := range s.targets {
			if t.Ejected || !t.Healthy {
				w.journal.breakAt(s.at, "dynamic", "%s is out: %+v", t.Target.Addr, t)
			}
		}
	}
}
