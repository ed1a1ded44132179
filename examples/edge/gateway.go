package main

import (
	"log/slog"
	"net/http"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/culvert-go/culvert/examples/metrics/prom"
	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/filters/topology"
	"github.com/culvert-go/culvert/statuspage"
	"github.com/culvert-go/culvert/upstream"
	"github.com/culvert-go/culvert/watchcodec/view"
	"github.com/culvert-go/culvert/wsupgrade"
)

// gateway is the running program.
type gateway struct {
	handler  http.Handler // for the node's clients
	own      http.Handler // the API server, with the gateway's credentials
	policy   topology.Policy
	node     string
	inputs   *topology.Watch
	filter   *topology.Filter
	registry *prometheus.Registry
	groups   []*upstream.Group
	tunnels  *wsupgrade.Registry
	status   *statuspage.Page
}

func newGateway(s *settings, log *slog.Logger) (g *gateway, err error) {
	g = &gateway{node: s.node, registry: prometheus.NewRegistry()}
	defer func() {
		if err != nil {
			g.close()
		}
	}()
	if g.policy, err = s.chosen(); err != nil {
		return g, err
	}
	if g.tunnels, err = wsupgrade.NewRegistry(wsupgrade.RegistryOptions{}); err != nil {
		return g, err
	}
	own, ownGroup, err := s.cluster.proxyTo("own", true, nil)
	if err != nil {
		return g, err
	}
	g.groups = append(g.groups, ownGroup)
	g.own = s.cluster.authorized(own)
	callers, callersGroup, err := s.cluster.proxyTo("callers", false, g.tunnels)
	if err != nil {
		return g, err
	}
	g.groups = append(g.groups, callersGroup)
	if g.inputs, err = topology.NewWatch(topology.WatchOptions{Handler: g.own, Policy: g.policy}); err != nil {
		return g, err
	}
	if g.filter, err = topology.New(topology.Options{Node: s.node, Inputs: g.inputs, Policy: g.policy, View: view.Options{Log: log}, Offline: true}); err != nil {
		return g, err
	}
	if g.status, err = statuspage.New(statuspage.Options{Title: "edge on " + s.node, Groups: slices.Values([]statuspage.Upstream{ownGroup, callersGroup}), Tunnels: g.tunnels}); err != nil {
		return g, err
	}
	return g, g.chain(s, callers)
}

// chain builds the handler: metrics, filter, and the proxy with the right credentials.
func (g *gateway) chain(s *settings, callers http.Handler) error {
	metrics, err := prom.New(g.registry)
	if err != nil {
		return err
	}
	g.registry.MustRegister(prom.Groups(g.groups), views{g.filter})
	if s.share {
		withOwn, without := g.own, callers
		callers = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !hasCredentials(r) {
				withOwn.ServeHTTP(w, r)
				return
			}
			without.ServeHTTP(w, r)
		})
	}
	g.handler = filters.NewChain(filters.Observe(metrics), filters.Observe(g.status), g.filter.Filter).Then(callers)
	return nil
}

func (g *gateway) close() {
	if g.filter != nil {
		g.filter.Close()
	}
	if g.inputs != nil {
		g.inputs.Close()
	}
	for _, group := range g.groups {
		group.Close()
	}
}
