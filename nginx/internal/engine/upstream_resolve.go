package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/resolver"
	"github.com/culvert-go/culvert/upstream"
)

// resolvedServer is a "server name resolve".
type resolvedServer struct {
	at      *conf.Directive
	target  upstream.Target // a template
	host    string
	port    string
	service string // of "service=": its records have the ports
}

// names are the servers of an upstream with "resolve": they are looked up again whenever they expire, from when a request or the
// start of the configuration needs them. It is a Source for each scheme of the upstream.
type names struct {
	group   string
	fixed   []upstream.Target // the other servers
	servers []watchedServer
	rule    *resolverRule
	backups bool // the balance knows backups
	logger  *slog.Logger

	mu      sync.Mutex
	found   [][]upstream.Target // by server
	changed chan struct{}       // closed when found changes
	stop    context.CancelFunc  // nil: they are not looked up yet
	running sync.WaitGroup
}

// watchedServer is a resolvedServer and what was found last, which a reload hands over.
type watchedServer struct {
	resolvedServer
	last *foundServer
}

// foundServer is what was found of a name, or of a service of it. It is safe for concurrent use.
type foundServer struct {
	mu    sync.Mutex
	list  []resolver.ServiceAddr // without ports if it is no service
	until time.Time
}

func (f *foundServer) get() ([]resolver.ServiceAddr, time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.list, f.until
}

func (f *foundServer) set(list []resolver.ServiceAddr, until time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list, f.until = list, until
}

// lookUpNames gives a group with "resolve" its name servers, and what was found of its names before a reload.
func (g *group) lookUpNames(c *compiler, http *level) error {
	if len(g.resolve) == 0 {
		return nil
	}
	rule := g.resolver
	if !rule.known() {
		timeout := rule
		if rule = *resolverSlot.of(http); timeout != nil && rule.known() {
			copied := *rule
			copied.timeout, rule = timeout.timeout, &copied
		}
	}
	n := &names{
		group: g.name, fixed: g.targets, rule: rule, backups: !g.noBackup, logger: c.engine.logger, changed: make(chan struct{}),
	}
	for _, s := range g.resolve {
		if !rule.known() {
			return s.at.Errorf("no resolver defined to resolve names at run time in upstream \"%s\"", g.name)
		}
		key := g.name + "\x00" + s.host + "\x00" + s.service
		found := c.engine.shared.found[key]
		if found == nil {
			if found = c.before.found[key]; found == nil {
				found = new(foundServer)
			}
			c.engine.shared.found[key] = found
		}
		list, _ := found.get()
		n.servers, n.found = append(n.servers, watchedServer{s, found}), append(n.found, s.targets(list))
	}
	g.names = n
	return nil
}

// Start begins to look up the names of upstreams that no request has needed yet, as nginx does at its start. Upstreams that are
// named by a pass directive without variables are looked up without it. The certificates of acme_certificate are obtained from
// then on.
func (e *Engine) Start() {
	e.acme.start(e)
	for _, groups := range []map[string]*group{e.groups, e.ofStream} {
		for _, g := range groups {
			if g.names != nil {
				g.names.start()
			}
		}
	}
}

// start begins to look the names up.
func (n *names) start() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.stop != nil {
		return
	}
	var ctx context.Context
	ctx, n.stop = context.WithCancel(context.Background())
	for i, s := range n.servers {
		n.running.Go(func() {
			n.watchServer(ctx, s, func(list []resolver.ServiceAddr) { n.set(i, s.targets(list)) })
		})
	}
}

// close ends the lookups. They don't begin again.
func (n *names) close() {
	n.mu.Lock()
	if n.stop == nil {
		n.stop = func() {}
	}
	n.stop()
	n.mu.Unlock()
	n.running.Wait()
}

func (n *names) set(server int, list []upstream.Target) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.found[server] = list
	close(n.changed)
	n.changed = make(chan struct{})
}

// Watch implements upstream.Source. Requests wait for the first lookup if there is no server but those with "resolve" and backups.
func (n *names) Watch(ctx context.Context, set func(...upstream.Target) error) {
	n.start()
	for first := true; ; first = false {
		n.mu.Lock()
		all, changed := slices.Concat(append([][]upstream.Target{n.fixed}, n.found...)...), n.changed
		n.mu.Unlock()
		if !first || slices.ContainsFunc(all, isPrimary) {
			if err := set(n.merge(all)...); err != nil {
				n.logger.Error(err.Error())
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

func isPrimary(t upstream.Target) bool { return !t.Backup }

// watchServer looks one name up again and again, and calls found with what is known of it.
func (n *names) watchServer(ctx context.Context, s watchedServer, found func([]resolver.ServiceAddr)) {
	list, until := s.last.get()
	for timer := time.NewTimer(time.Until(until)); ; {
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		result, err := n.lookUp(ctx, s)
		if ctx.Err() != nil {
			continue
		}
		wait := max(time.Until(result.Valid), time.Second)
		var failed *resolver.Error
		switch {
		case err == nil:
			list = result.List
		case errors.As(err, &failed) && failed.Code == resolver.NotFound:
			list, wait = nil, cmp.Or(n.rule.valid, 10*time.Second)
		default: // what is known is kept
			wait = max(n.rule.timeout, time.Second)
		}
		s.last.set(list, time.Now().Add(wait))
		found(list)
		timer.Reset(wait)
	}
}

// lookUp looks up a name or its service, and logs what fails.
func (n *names) lookUp(ctx context.Context, s watchedServer) (found resolver.Service, err error) {
	bounded, cancel := n.rule.bound(ctx)
	defer cancel()
	if s.service == "" {
		var a resolver.Addresses
		a, err = n.rule.LookupIP(bounded, s.host)
		found.Valid = a.Valid
		for _, ip := range a.List {
			found.List = append(found.List, resolver.ServiceAddr{AddrPort: netip.AddrPortFrom(ip, 0)})
		}
	} else {
		found, err = n.rule.LookupService(bounded, s.host, s.service)
	}
	if ctx.Err() != nil {
		return found, err
	}
	for _, e := range found.Failed {
		n.logger.Error(fmt.Sprintf("%s while resolving service %s of %s", e, s.service, s.host))
	}
	switch {
	case err != nil && s.service != "":
		n.logger.Error(fmt.Sprintf("service %s of %s could not be resolved (%s)", s.service, s.host, err))
	case err != nil:
		n.logger.Error(fmt.Sprintf("%s could not be resolved (%s)", s.host, err))
	}
	return found, err
}

// targets returns the targets of addresses. Those of a service have its ports, weights unless the server has one, and are backups
// unless they have the best priority.
func (s resolvedServer) targets(list []resolver.ServiceAddr) []upstream.Target {
	targets := make([]upstream.Target, len(list))
	for i, a := range list {
		t := s.target
		if s.service == "" {
			t.Addr = net.JoinHostPort(a.Addr().String(), s.port)
		} else {
			t.Addr = a.AddrPort.String()
			t.Weight = cmp.Or(t.Weight, a.Weight)
			t.Backup = t.Backup || a.Priority != list[0].Priority
		}
		targets[i] = t
	}
	return targets
}

// merge makes targets those of one group. Without another one the backups get the requests.
func (n *names) merge(all []upstream.Target) []upstream.Target {
	if !n.backups {
		all = slices.DeleteFunc(all, func(t upstream.Target) bool { return t.Backup })
	}
	if !slices.ContainsFunc(all, isPrimary) {
		for i := range all {
			all[i].Backup = false
		}
	}
	return distinct(all)
}
