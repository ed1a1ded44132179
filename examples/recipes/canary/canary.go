// Package canary sends a share of the sessions, and all requests of testers, to the next version.
package canary

import (
	"context"
	"net/http"

	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// Gateway is a gateway over two versions of an application.
type Gateway struct {
	http.Handler
	current, next string
	all, testers  *upstream.Group
}

// New returns a Gateway whose next version gets no request but those of testers yet.
func New(current, next string) (*Gateway, error) {
	all, err := upstream.New(
		upstream.Options{Name: "all", Balance: upstream.Sticky(upstream.StickyOptions{Name: "version"})},
		upstream.Target{Addr: current}, upstream.Target{Addr: next, Down: true},
	)
	if err != nil {
		return nil, err
	}
	testers, err := upstream.New(upstream.Options{Name: "testers"}, upstream.Target{Addr: next})
	if err != nil {
		return nil, err
	}
	g := &Gateway{current: current, next: next, all: all, testers: testers}
	handler, err := proxy.New(proxy.Options{Upstream: g})
	if err != nil {
		return nil, err
	}
	g.Handler = filters.NewChain().Then(handler)
	return g, nil
}

// Pick implements upstream.Picker.
func (g *Gateway) Pick(ctx context.Context, r *http.Request, tried ...upstream.Lease) (upstream.Lease, error) {
	if r.Header.Get("X-Canary") == "next" {
		return g.testers.Pick(ctx, r, tried...)
	}
	return g.all.Pick(ctx, r, tried...) // a session keeps its version, by a cookie
}

// Share lets the next version have so many percent of the new sessions. With 0 its sessions move to the current one.
func (g *Gateway) Share(percent int) error {
	return g.all.Set(
		upstream.Target{Addr: g.current, Weight: max(1, 100-percent), Down: percent >= 100},
		upstream.Target{Addr: g.next, Weight: max(1, percent), Down: percent <= 0},
	)
}

// Close closes the groups.
func (g *Gateway) Close() {
	g.all.Close()
	g.testers.Close()
}
