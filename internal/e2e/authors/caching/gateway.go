package main

import (
	"net/http"
	"slices"
	"time"

	"github.com/culvert-go/culvert/cachectl"
	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

type gateway struct {
	public, operators http.Handler
	group             *upstream.Group
}

func (g *gateway) close() { g.group.Close() }

// rules are in order: the first that matches a response decides.
func rules() cachectl.Rules {
	private := cachectl.Rules{{ // what sets a cookie is one user's
		Match:  cachectl.Has("Set-Cookie"),
		Policy: cachectl.Policy{Mode: cachectl.Override, CacheControl: "private, no-store"},
	}}
	return slices.Concat(private, cachectl.API("/api/"), cachectl.AllErrorPages(), cachectl.StaticAssets(), cachectl.HTML())
}

func newGateway(c config) (*gateway, error) {
	group, err := upstream.New(upstream.Options{Name: "app", DialTimeout: 2 * time.Second}, c.app)
	if err != nil {
		return nil, err
	}
	g := &gateway{group: group}
	if err := g.handlers(c); err != nil {
		group.Close()
		return nil, err
	}
	return g, nil
}

func (g *gateway) handlers(c config) error {
	app, err := proxy.New(proxy.Options{Upstream: g.group})
	if err != nil {
		return err
	}
	caching, err := cachectl.New(rules())
	if err != nil {
		return err
	}
	warn, err := cachectl.Warn(c.log)
	if err != nil {
		return err
	}
	clients, err := filters.RealIP(filters.RealIPOptions{Trusted: c.caches})
	if err != nil {
		return err
	}
	compress, err := filters.Compress(filters.CompressOptions{})
	if err != nil {
		return err
	}
	site := filters.NewChain(warn, caching, compress)
	g.public = filters.NewChain(clients, filters.AccessLog(c.log)).Then(site.Then(app))
	mux := http.NewServeMux()
	mux.Handle("GET /cache", explain(site.Then(app)))
	g.operators = mux
	return nil
}
