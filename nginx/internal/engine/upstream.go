package engine

import (
	"crypto/tls"
	"slices"
	"strconv"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/upstream"
)

// upstreamModule holds the groups of servers.
var upstreamModule = module{
	directives: []directive{
		{name: "upstream", repeatable: true, declare: declareUpstream},
		{name: "hash", upstream: balance},
		{name: "ip_hash", upstream: balance},
		{name: "least_conn", upstream: balance},
		{name: "least_time", upstream: balance},
		{name: "random", upstream: balance},
		{name: "keepalive", upstream: groupKeepalive},
		{name: "keepalive_requests", upstream: groupKeepalive},
		{name: "keepalive_time", upstream: groupKeepalive},
		{name: "keepalive_timeout", upstream: groupKeepalive},
		{name: "resolver", upstream: groupResolver},
		{name: "resolver_timeout", upstream: groupResolver},
		{name: "sticky", upstream: groupSticky},
		{name: "server", repeatable: true, upstream: groupServer},
	},
	hooks: hooks{header: stickyHeader, log: stickyEnd},
}

// group is an upstream block, or the host of a proxy_pass that names none.
type group struct {
	name     string
	balance  upstream.Balance
	targets  []upstream.Target
	chosen   string // the directive that has set balance
	noBackup bool
	sticky   *stickyRule // nil: there is none
	least    *leastTime  // nil: balance is another

	implicit  bool // the host of a pass directive, not an upstream block
	keepalive keepaliveRule
	fails     []int            // statuses that count as failures, of all locations
	resolver  *resolverRule    // nil: http's
	resolve   []resolvedServer // "server name resolve", until the resolver is known
	names     *names           // nil if there is none of these
	host      *resolvedHost    // of a proxy_pass with variables; nil if all targets are known at load

	schemes map[string]*upstream.Group // by http and https, created when they are needed
}

func newGroup(name string) *group {
	return &group{name: name, balance: upstream.RoundRobin(), schemes: map[string]*upstream.Group{}}
}

// failsAt adds statuses that count as failures of a target. They apply to the whole group, as its
// targets' health does, not only to the location that names them.
func (g *group) failsAt(statuses []int) { g.fails = append(g.fails, statuses...) }

func (g *group) close() {
	if g.names != nil {
		g.names.close()
	}
	for _, u := range g.schemes {
		u.Close()
	}
}

// declareUpstream compiles an upstream block.
func declareUpstream(c *compiler, http *level, d *conf.Directive) error {
	name := d.Args[0]
	if _, ok := c.groups[name]; ok {
		return d.Errorf("duplicate upstream \"%s\"", name)
	}
	g, faulty := newGroup(name), false
	for _, row := range d.Block {
		if compile := c.inUpstream[row.Name].upstream; compile != nil {
			err := compile(c, g, row)
			faulty = faulty || err != nil
			if err := c.fail(err); err != nil {
				return err
			}
		}
	}
	switch {
	case faulty: // a server may have been left out
	case len(g.targets) == 0 && len(g.resolve) == 0:
		return d.Errorf("no servers are inside upstream")
	case !slices.ContainsFunc(g.targets, func(t upstream.Target) bool { return !t.Backup }) && len(g.resolve) == 0:
		return d.Errorf("no servers in upstream \"%s\"", name) // nothing but backups
	}
	c.groups[name] = g
	c.deferred = append(c.deferred, func() error { return g.lookUpNames(c, http) })
	return nil
}

// groupResolver compiles resolver and resolver_timeout inside upstream.
func groupResolver(c *compiler, g *group, d *conf.Directive) error {
	own := newLevel()
	*resolverSlot.edit(own) = g.resolver
	err := c.directives[d.Name].compile(c, own, d)
	g.resolver = *resolverSlot.of(own)
	return err
}

// upstream returns the group of targets for a scheme.
func (e *Engine) upstream(g *group, scheme string) (*upstream.Group, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if u, ok := g.schemes[scheme]; ok {
		return u, nil
	}
	o := upstream.Options{Name: g.name, Scheme: scheme, Balance: g.balance, FailStatuses: g.fails, MaxEjected: 1}
	if g.sticky != nil {
		o.Balance = g.sticky.over(g.balance)
	}
	if scheme == "https" {
		o.TLSConfig = &tls.Config{InsecureSkipVerify: true} // connections are the transports', which verify
	}
	targets := g.targets
	if g.names != nil {
		targets = nil
		o.Source, o.QueueTimeout = g.names, g.names.rule.timeout
	}
	u, err := upstream.New(o, distinct(targets)...)
	if err != nil {
		return nil, err
	}
	g.schemes[scheme] = u
	return u, nil
}

// distinct returns the targets of list with an ID for each that has the address of an earlier one: nginx sends a request to one after
// the other.
func distinct(list []upstream.Target) []upstream.Target {
	list, times := slices.Clone(list), map[string]int{}
	for i := range list {
		t := &list[i]
		if n := times[t.Addr]; n > 0 {
			t.ID = strconv.Itoa(n + 1)
		}
		times[t.Addr]++
	}
	return list
}
