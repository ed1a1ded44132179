package engine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/upstream"
)

// resolverModule looks up names while requests are served.
var resolverModule = module{
	directives: []directive{
		{name: "resolver", compile: resolver},
		{name: "resolver_timeout", compile: resolverTimeout},
	},
}

var resolverSlot = newSlot((*resolverRule)(nil))

// resolverRule is a resolver: the name servers for names that come from variables, and for
// servers with "resolve".
type resolverRule struct {
	servers []string // host:port, queried in turn
	valid   time.Duration
	timeout time.Duration
	no4     bool
	no6     bool
}

// resolver compiles "resolver address ... [valid=time] [ipv4=on|off] [ipv6=on|off]".
func resolver(_ *compiler, l *level, d *conf.Directive) error {
	r := &resolverRule{timeout: 30 * time.Second}
	if have := *resolverSlot.of(l); have != nil {
		r.timeout = have.timeout
	}
	for _, arg := range d.Args {
		key, value, ok := strings.Cut(arg, "=")
		switch {
		case ok && key == "valid":
			if r.valid, ok = conf.Duration(value); !ok {
				return d.Errorf("invalid parameter: %s", arg)
			}
		case (key == "ipv4" || key == "ipv6") && (value == "on" || value == "off"):
			if key == "ipv4" {
				r.no4 = value == "off"
			} else {
				r.no6 = value == "off"
			}
		case key == "ipv4", key == "ipv6":
			return d.Errorf("invalid parameter: %s", arg)
		case key == "status_zone": // it is about nginx's API
		default:
			if err := r.nameServer(d, arg); err != nil {
				return err
			}
		}
	}
	switch {
	case len(r.servers) == 0:
		return d.Errorf("no name servers defined")
	case r.no4 && r.no6:
		return d.Errorf("\"ipv4\" and \"ipv6\" cannot both be \"off\"")
	}
	*resolverSlot.edit(l) = r
	return nil
}

func (r *resolverRule) nameServer(d *conf.Directive, arg string) error {
	host, port, err := hostPort(d, arg, "53")
	if err != nil {
		return err
	}
	ips, err := lookup(host)
	if err != nil {
		return d.Errorf("host not found in resolver \"%s\"", arg)
	}
	for _, ip := range ips {
		r.servers = append(r.servers, net.JoinHostPort(ip, port))
	}
	return nil
}

func resolverTimeout(_ *compiler, l *level, d *conf.Directive) error {
	t, err := d.Duration()
	if err != nil {
		return err
	}
	r := resolverRule{}
	if have := *resolverSlot.of(l); have != nil {
		r = *have
	}
	r.timeout = t
	*resolverSlot.edit(l) = &r
	return nil
}

// source returns a Source that looks up the address's host, and calls failed if it can't.
func (r *resolverRule) source(t upstream.Target, address, port string, failed func(error)) (upstream.Source, error) {
	host, given := splitPort(address)
	if given != "" {
		port = given
	}
	var next atomic.Uint64
	return upstream.DNS(net.JoinHostPort(host, port), upstream.DNSOptions{
		Target:      t,
		MinInterval: r.valid, // 0 is the time to live of the records
		MaxInterval: r.valid,
		OnError:     failed,
		Resolver: &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			server := r.servers[int(next.Add(1)-1)%len(r.servers)]
			return new(net.Dialer).DialContext(ctx, network, server)
		}},
	})
}

// wanted returns the addresses of the families that the resolver looks for.
func (r *resolverRule) wanted(list []upstream.Target) []upstream.Target {
	return slices.DeleteFunc(list, func(t upstream.Target) bool {
		at, err := netip.ParseAddrPort(t.Addr)
		return err == nil && (r.no4 && at.Addr().Is4() || r.no6 && at.Addr().Is6())
	})
}

// names is a Source of given targets and of names that are looked up.
type names struct {
	fixed   []upstream.Target
	lookups []upstream.Source
	rule    *resolverRule
	first   chan struct{} // closed when the first result is known
	once    sync.Once
	mu      sync.Mutex
	failure error
	found   bool
}

// Watch merges the targets of the names.
func (n *names) Watch(ctx context.Context, set func(...upstream.Target) error) {
	found := make([][]upstream.Target, len(n.lookups))
	var running sync.WaitGroup
	var merging sync.Mutex
	if len(n.fixed) > 0 {
		_ = set(distinct(n.fixed)...)
		n.settle(nil)
	}
	for i, lookup := range n.lookups {
		running.Go(func() {
			lookup.Watch(ctx, func(list ...upstream.Target) error {
				merging.Lock()
				defer merging.Unlock()
				found[i] = n.rule.wanted(list)
				all := slices.Concat(append([][]upstream.Target{n.fixed}, found...)...)
				if len(all) == 0 {
					return n.settle(errors.New("no address of the wanted family"))
				}
				err := set(distinct(all)...)
				n.settle(err)
				return err
			})
		})
	}
	running.Wait()
}

// settle records a result and, if it is the first, releases those that wait for it.
func (n *names) settle(err error) error {
	n.mu.Lock()
	n.found, n.failure = n.found || err == nil, err
	n.mu.Unlock()
	n.once.Do(func() { close(n.first) })
	return err
}

// known waits for the first result of the name servers.
func (g *group) known(ctx context.Context) error {
	if g.names == nil {
		return nil
	}
	timer := time.NewTimer(g.names.rule.timeout)
	defer timer.Stop()
	select {
	case <-g.names.first:
	case <-timer.C:
		return fmt.Errorf("%s could not be resolved (110: Operation timed out)", g.name)
	case <-ctx.Done():
		return nil // the proxy handles that
	}
	if err := g.names.lookupError(); err != nil {
		return fmt.Errorf("%s could not be resolved (%w)", g.name, err)
	}
	return nil
}

// unresolved reports whether no lookup of the name has succeeded yet: it must be looked up anew.
func (g *group) unresolved() bool { return g.names != nil && g.names.lookupError() != nil }

// lookupError returns why no lookup has succeeded yet; nil if one has or none has failed.
func (n *names) lookupError() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.found {
		return nil
	}
	return n.failure
}

// resolvedNames are the upstreams of names that came from variables.
type resolvedNames struct {
	mu     sync.Mutex
	groups map[string]*group
}

// group finds or creates the upstream of a name or an address.
func (r *resolvedNames) group(rule *resolverRule, to passTo) (*group, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := fmt.Sprintf("%p %s://%s", rule, to.scheme, to.address)
	if g, ok := r.groups[key]; ok && !g.unresolved() {
		return g, nil
	}
	g, err := makeGroup(rule, to)
	if err != nil {
		return nil, err
	}
	if r.groups == nil {
		r.groups = map[string]*group{}
	}
	if old := r.groups[key]; old != nil {
		old.close()
	}
	if len(r.groups) >= maxDynamic {
		r.evict()
	}
	r.groups[key] = g
	return g, nil
}

// evict closes one of the upstreams: requests in flight keep its targets.
func (r *resolvedNames) evict() {
	for key, old := range r.groups {
		old.close()
		delete(r.groups, key)
		return
	}
}

func (r *resolvedNames) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, g := range r.groups {
		g.close()
	}
}

// makeGroup creates the upstream of an address, or of a name that rule looks up.
func makeGroup(rule *resolverRule, to passTo) (*group, error) {
	g := newGroup(to.address)
	host, port, err := hostPort(&conf.Directive{}, to.address, to.port)
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(host, unixPrefix) {
		g.targets = []upstream.Target{{Addr: host}}
		return g, nil
	}
	if ip, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		g.targets = []upstream.Target{{Addr: net.JoinHostPort(ip.String(), port)}}
		return g, nil
	}
	if rule == nil || len(rule.servers) == 0 {
		return nil, errors.New("no resolver defined to resolve " + host)
	}
	return g, g.lookUp(rule, upstream.Target{}, to.address, port)
}

// lookUp adds a name to the group.
func (g *group) lookUp(rule *resolverRule, t upstream.Target, address, port string) error {
	if g.names == nil {
		g.names = &names{rule: rule, first: make(chan struct{})}
	}
	n := g.names
	source, err := rule.source(t, address, port, func(err error) { n.settle(err) })
	if err != nil {
		return err
	}
	n.lookups = append(n.lookups, source)
	return nil
}
