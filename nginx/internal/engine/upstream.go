package engine

import (
	"crypto/tls"
	"slices"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/upstream"
)

// group is an upstream block, or the host of a proxy_pass that names none.
type group struct {
	name     string
	balance  upstream.Balance
	targets  []upstream.Target
	chosen   string // the directive that has set balance
	noBackup bool

	keepalive keepaliveRule
	fails     []int            // statuses that count as failures, of all locations
	resolver  *resolverRule    // nil: http's
	resolve   []resolvedServer // "server name resolve", until the resolver is known
	names     *names           // nil if all targets are known at load

	schemes map[string]*upstream.Group // by http and https, created when they are needed
}

func newGroup(name string) *group {
	return &group{name: name, balance: upstream.RoundRobin(), schemes: map[string]*upstream.Group{}}
}

// failsAt adds statuses that count as failures of a target. They apply to the whole group, as its
// targets' health does, not only to the location that names them.
func (g *group) failsAt(statuses []int) { g.fails = append(g.fails, statuses...) }

func (g *group) close() {
	for _, u := range g.schemes {
		u.Close()
	}
}

// declareUpstreams compiles the upstream blocks.
func (c *compiler) declareUpstreams(list []*conf.Directive) error {
	for _, d := range list {
		if d.Name != "upstream" {
			continue
		}
		name := d.Args[0]
		if _, ok := c.groups[name]; ok {
			return d.Errorf("duplicate upstream \"%s\"", name)
		}
		g := newGroup(name)
		if err := c.fill(g, d); err != nil {
			return err
		}
		if !slices.ContainsFunc(g.targets, func(t upstream.Target) bool { return !t.Backup }) && len(g.resolve) == 0 {
			return d.Errorf("no servers in upstream \"%s\"", name) // nothing but backups
		}
		c.groups[name] = g
	}
	return nil
}

// fill compiles the body of an upstream block.
func (c *compiler) fill(g *group, d *conf.Directive) error {
	servers := 0
	for _, row := range d.Block {
		switch row.Name {
		case "hash", "ip_hash", "least_conn", "random":
			if err := c.balance(g, row); err != nil {
				return err
			}
		case "keepalive", "keepalive_requests", "keepalive_time", "keepalive_timeout":
			if err := g.keepalive.set(row); err != nil {
				return err
			}
		case "resolver", "resolver_timeout":
			own := &level{resolver: g.resolver}
			if err := c.run[row.Name](c, own, row); err != nil {
				return err
			}
			g.resolver = own.resolver
		case "server":
			if err := g.server(row); err != nil {
				return err
			}
			servers++
		}
	}
	if servers == 0 {
		return d.Errorf("no servers are inside upstream")
	}
	return nil
}

// upstream returns the group of targets for a scheme.
func (e *Engine) upstream(g *group, scheme string) (*upstream.Group, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if u, ok := g.schemes[scheme]; ok {
		return u, nil
	}
	o := upstream.Options{Name: g.name, Scheme: scheme, Balance: g.balance, FailStatuses: g.fails}
	if scheme == "https" {
		o.TLSConfig = &tls.Config{InsecureSkipVerify: true} // connections are the transports', which verify
	}
	targets := g.targets
	if g.names != nil {
		g.names.fixed, targets = g.targets, nil
		o.Source, o.QueueTimeout = g.names, g.names.rule.timeout
	}
	u, err := upstream.New(o, targets...)
	if err != nil {
		return nil, err
	}
	g.schemes[scheme] = u
	return u, nil
}

// resolveNames gives the groups with "resolve" their name servers.
func (c *compiler) resolveNames(http *level) error {
	for _, g := range c.groups {
		rule := g.resolver
		if rule == nil {
			rule = http.resolver
		}
		for _, s := range g.resolve {
			if rule == nil || len(rule.servers) == 0 {
				return s.at.Errorf("no resolver defined to resolve names at run time in upstream \"%s\"", g.name)
			}
			if err := g.lookUp(rule, s.target, s.address, "80"); err != nil {
				return s.at.Errorf("%s", err)
			}
		}
	}
	return nil
}
