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

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/upstream"
)

// resolvedNames are the upstreams of names that came from variables.
type resolvedNames struct {
	mu     sync.Mutex
	groups map[resolvedKey]*group
}

// resolvedKey is what such an upstream depends on.
type resolvedKey struct {
	rule                  *resolverRule
	scheme, address, port string
}

// group finds or creates the upstream of a name or an address.
func (r *resolvedNames) group(rule *resolverRule, to passTo) (*group, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := resolvedKey{rule, to.scheme, to.address, to.port}
	if g, ok := r.groups[key]; ok {
		return g, nil
	}
	g, err := makeGroup(rule, to)
	if err != nil {
		return nil, err
	}
	if r.groups == nil {
		r.groups = map[resolvedKey]*group{}
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
	g.implicit = true
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
	if !rule.known() {
		return nil, errors.New("no resolver defined to resolve " + host)
	}
	g.host = &resolvedHost{rule: rule, name: host, port: port}
	return g, nil
}

// resolvedHost is the host of a group, whose addresses each request looks up. They are the group's targets until a request finds
// others; a failure of one counts for its request alone, as in nginx.
type resolvedHost struct {
	rule       *resolverRule
	name, port string

	mu    sync.Mutex
	addrs []netip.Addr // in their order, which name servers vary
}

// lookUp looks the host of a group up, if it has one. The error is for the log.
func (e *Engine) lookUp(ctx context.Context, g *group) error {
	h := g.host
	if h == nil {
		return nil
	}
	bounded, cancel := h.rule.bound(ctx)
	defer cancel()
	found, err := h.rule.LookupIP(bounded, h.name)
	if ctx.Err() != nil {
		return nil // the client has gone: the proxy handles that
	}
	if err != nil {
		return fmt.Errorf("%s could not be resolved (%w)", h.name, err)
	}
	addrs := slices.SortedFunc(slices.Values(found.List), netip.Addr.Compare)
	h.mu.Lock()
	defer h.mu.Unlock()
	if slices.Equal(addrs, h.addrs) {
		return nil
	}
	h.addrs = addrs
	list := make([]upstream.Target, len(found.List))
	for i, ip := range found.List {
		list[i] = upstream.Target{Addr: net.JoinHostPort(ip.String(), h.port), MaxFails: -1}
	}
	return e.setTargets(g, list)
}

// setTargets replaces the targets of a group, whose schemes may not be in use yet.
func (e *Engine) setTargets(g *group, list []upstream.Target) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	g.targets = list
	for _, u := range g.schemes {
		if err := u.Set(distinct(list)...); err != nil {
			return err
		}
	}
	return nil
}
