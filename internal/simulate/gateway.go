package simulate

import (
	"bytes"
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
	"github.com/culvert-go/culvert/wsupgrade"
)

// gatewayAddr is the gateway's address.
const gatewayAddr = "192.0.2.1:80"

// gateway is the system under test.
type gateway struct {
	plan     *Plan
	journal  *Journal
	network  surroundings
	group    *upstream.Group
	dynamic  *dynamic // nil: the group has the targets
	proxy    *proxy.Proxy
	registry *wsupgrade.Registry
	server   wiretest.Serving
	served   sync.WaitGroup
	errors   serverLog
	closers  []func()
	ids      atomic.Int64
	serving  atomic.Int64    // calls of the handler that have not returned
	healthy  [8]atomic.Int64 // calls of Check.Healthy, by target
	changes  atomic.Int64    // those of Check.OnChange
	attempts observing
	dir      string // of temporary files
	setting  sync.Mutex
	checks   []func() // at instants at which nothing else happens
	books    []*book
}

// balances is how many ways to balance there are. Some have names.
const (
	balances = 7

	balanceLeast  = 1
	balanceRandom = 2
	balanceFirst  = 3
	balanceOwn    = balances // a BalanceFunc, which addOwnBalance chooses
)

// balance returns the nth way to balance.
func balance(n int) upstream.Balance {
	byPath := func(r *http.Request) string { return r.URL.Path }
	switch n {
	case balanceLeast:
		return upstream.LeastConn()
	case balanceRandom:
		return upstream.RandomTwo()
	case balanceFirst:
		return upstream.First()
	case 4:
		return upstream.Hash(byPath)
	case 5:
		return upstream.HashModulo(byPath)
	case 6:
		return upstream.Sticky(upstream.StickyOptions{})
	case balanceOwn:
		var calls atomic.Int64
		return upstream.BalanceFunc(func(_ *http.Request, available []upstream.Candidate) int {
			return int(calls.Add(1)) % len(available)
		})
	}
	return upstream.RoundRobin()
}

// surroundings provide the gateway's connections.
type surroundings interface {
	dialTarget(ctx context.Context, addr string) (net.Conn, error)
	listenGateway() net.Listener
	listenSecure() net.Listener // for TLS, may be nil
	plain() bool                // handlers get net/http's own writers
	portable() bool             // tunnels run over the portable engine
}

// newGateway makes the gateway of a plan and starts it.
func newGateway(plan *Plan, n surroundings, j *Journal, dir string) (*gateway, error) {
	g := &gateway{plan: plan, journal: j, network: n, dir: dir}
	g.errors.journal = j
	p := &plan.Gateway
	o := upstream.Options{
		Name: "group", Balance: plan.affine(balance(p.Balance)),
		Queue: p.Queue, MaxInFlight: p.MaxInFlight,
		DialContext: func(ctx context.Context, _, addr string) (net.Conn, error) {
			j.dialPanics(ctx)
			c, err := n.dialTarget(ctx, addr)
			if conn, ok := c.(*Conn); ok {
				return &socket{Conn: conn, gateway: g}, nil
			}
			return c, err
		},
		DialTimeout: p.DialTimeout, HeaderTimeout: p.HeaderTimeout, WriteTimeout: p.TargetWrite,
		ProxyProtocol: p.Introduces,
		MaxIdleConns:  p.MaxIdle, IdleTimeout: p.IdleTimeout, MaxConnAge: p.noneIs(0), MaxConnRequests: p.MaxConnRequests,
	}
	if p.H2Targets {
		o.Protocol = upstream.H2C
	}
	if p.FailStatus {
		o.FailStatuses = []int{500, 503}
	}
	if p.Check {
		o.Check = &upstream.Check{Path: checkPath, Interval: p.CheckEvery}
	}
	plan.Upstream.options(g, &o)
	list := g.targets(-1)
	var err error
	if g.group, err = upstream.New(o, list...); err != nil {
		return nil, err
	}
	j.noteGroup(groupEvent{kind: groupSet, targets: list})
	if p.Dynamic {
		if g.dynamic, err = newDynamic(g, o); err != nil {
			return nil, err
		}
	}
	if err := g.makeProxy(); err != nil {
		return nil, err
	}
	handler, err := g.chain()
	if err != nil {
		return nil, err
	}
	g.server = newServer(plan, g.lending(g.withPages(guard(j, p, handler, n.plain(), plan.exact()))), log.New(&g.errors, "", 0))
	listener := n.listenGateway()
	g.served.Go(func() { _ = g.server.Serve(listener) })
	if secure := n.listenSecure(); secure != nil {
		g.served.Go(func() { _ = g.server.ServeTLS(secure, "", "") })
	}
	return g, nil
}

// makeProxy makes the proxy of the plan.
func (g *gateway) makeProxy() (err error) {
	p := &g.plan.Gateway
	if g.registry, err = wsupgrade.NewRegistry(wsupgrade.RegistryOptions{}); err != nil {
		return err
	}
	upgrades, err := wsupgrade.New(wsupgrade.Options{Protocols: []string{"websocket", otherProtocol}, Dial: g.dialTunnel, Registry: g.registry, Portable: g.network.portable(), IdleTimeout: g.plan.takes(time.Minute)})
	if err != nil {
		return err
	}
	o := proxy.Options{
		Upstream: g.group, Upgrades: upgrades, DetachTunnels: p.Detach,
		Timeout: p.noneIs(p.Timeout), BodyTimeout: p.noneIs(p.BodyTimeout), ReadTimeout: p.ReadTimeout, WriteTimeout: p.WriteTimeout,
		RequestBuffer: p.buffer(p.RequestBuffer, g.dir), ResponseBuffer: p.buffer(p.ResponseBuffer, g.dir), FlushInterval: p.FlushInterval,
		Retry:   proxy.Retry{Tries: p.Tries, Timeout: p.noneIs(0), Errors: p.RetryErrors, Timeouts: p.RetryTimeouts, NonIdempotent: p.NonIdempotent},
		Rewrite: g.picking, OnError: g.failed,
	}
	o.Retry.Wait, o.Retry.Hedge = p.RetryWait, p.Hedge
	o.StreamRequest, o.KeepFieldNames = p.Streams, p.KeepsNames
	if p.Picker {
		o.Upstream = picker{g.group}
	}
	if g.dynamic != nil {
		o.Upstream = g.dynamic
	}
	p.Hooks.options(&o)
	g.raising(&o)
	g.observeAttempts(&o)
	if p.RetryStatus {
		o.Retry.Statuses = []int{503}
	}
	if p.NoKeepBody {
		o.Retry.KeepBody = -1
	}
	if p.Budget {
		if o.Retry.Budget, err = proxy.NewRetryBudget(budgetRatio, budgetPerSecond); err != nil {
			return err
		}
	}
	if p.Transport {
		o.Transport = struct{ http.RoundTripper }{g.group.Transport()}
		if !p.H2Targets {
			o.Transport = unheld{g.group.Transport()}
		}
	}
	if p.Strict {
		o.Transport = g.strict()
	}
	g.proxy, err = proxy.New(o)
	return err
}

// buffer returns the buffer of a kind.
func (g *GatewayPlan) buffer(kind int, dir string) *proxy.Buffer {
	switch kind {
	case 1:
		return &proxy.Buffer{Memory: g.BufferSize}
	case 2:
		return &proxy.Buffer{Memory: 1 << 10, Disk: g.BufferSize, Dir: dir}
	}
	return nil
}

// chain returns the proxy behind the plan's filters.
func (g *gateway) chain() (http.Handler, error) {
	var list []culvert.Filter
	if g.plan.Gateway.Hooks.Warn {
		f, err := g.warn()
		if err != nil {
			return nil, err
		}
		list = append(list, f)
	}
	for _, p := range g.plan.Gateway.Filters {
		f, err := filterKinds[p.Kind].make(g, p)
		if err != nil {
			return nil, err
		}
		list = append(list, f)
	}
	return g.enter(filters.NewChain(list...).Then(g.observe(g.proxy))), nil
}

// change makes a change of the plan.
func (g *gateway) change(c ChangePlan) {
	if c.Kind == CloseTunnels {
		g.closeTunnels()
		return
	}
	without := -1
	switch c.Kind {
	case DrainGroup:
		g.journal.Note("gateway", "drain")
		g.drainGroup()
		return
	case DrainTarget, UndrainTarget:
		g.setDrained(c.Arg, c.Kind == DrainTarget)
		return
	case SetTargets:
		without = c.Arg % len(g.plan.Targets)
	}
	g.journal.Note("gateway", "targets without %d", without)
	g.set(without, c)
}

// closeTunnels closes all tunnels, as a program may that removes a service. Close takes at most a second for each
// end of a tunnel (wsupgrade.Tunnel.Close).
func (g *gateway) closeTunnels() {
	for t := range g.registry.All() {
		g.journal.Note("gateway", "closes a tunnel")
		begun := time.Now()
		t.Close(wsupgrade.ServiceRestart, "closed by the gateway")
		if took := time.Since(begun); took > 2*time.Second && g.plan.exact() {
			g.journal.Break("held", "Close of a tunnel took %v", took)
		}
	}
}

// close ends the gateway, as a program does after a drain. A client that accepts nothing may hold a filter's refusal for a
// minute, at any pace (internal/deadline, OwnTimeout).
func (g *gateway) close() {
	ctx, cancel := context.WithTimeout(context.Background(), max(g.plan.takes(10*time.Minute), patience+time.Minute))
	defer cancel()
	_ = g.registry.Drain(ctx, wsupgrade.GoingAway)
	if err := g.server.Shutdown(ctx); err != nil {
		g.journal.Break("drain", "the server does not end: %v; goroutines:\n%s", err, everything())
		_ = g.server.Close()
	}
	g.served.Wait()
	if err := g.proxy.Drain(ctx); err != nil {
		g.journal.Break("drain", "exchanges are left: %v", err)
	}
	for _, f := range g.closers {
		f()
	}
	_ = g.group.Close()
	if g.dynamic != nil {
		g.dynamic.close()
	}
}

// serverLog receives the log of the gateway's server.
type serverLog struct {
	journal *Journal
	mu      sync.Mutex
}

// Write checks a line, which may show that a rule is broken.
func (l *serverLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := string(bytes.TrimSpace(p))
	switch {
	case strings.Contains(text, "panic serving") && !planned(text):
		l.journal.Break("panic", "%s", text)
	case strings.Contains(text, "superfluous"):
		l.journal.Break("superfluous", "%s", text)
	default:
		l.journal.Note("server", "%s", text)
	}
	return len(p), nil
}

var _ io.Writer = (*serverLog)(nil)
