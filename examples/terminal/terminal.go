package main

import (
	"embed"
	"io/fs"
	"log/slog"
	"net/http"
	"time"

	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
	"github.com/culvert-go/culvert/wsupgrade"
)

//go:embed page
var pages embed.FS

// terminal serves the page, and only exec of the cluster.
type terminal struct {
	http.Handler
	group *upstream.Group
}

func newTerminal(c cluster, log *slog.Logger) (*terminal, error) {
	group, err := c.group()
	if err != nil {
		return nil, err
	}
	b := bridge{log}
	upgrades, err := wsupgrade.New(wsupgrade.Options{
		Dial:      group.Dial,
		TLSConfig: group.TLSConfig(),
		Hosts:     []string{"localhost", "127.0.0.1", "::1"}, // no foreign name may lead here
		Observe:   b.observe,
		// A terminal whose browser has disconnected without a Close frame ends.
		PingInterval: time.Minute,
	})
	if err != nil {
		return nil, err
	}
	exec, err := proxy.New(proxy.Options{Upstream: group, Upgrades: upgrades, Rewrite: func(o *proxy.Outbound) {
		o.Out.Host = ""
		o.Out.Header.Del("Authorization") // the browser has no rights of its own
		o.Out.Header.Del("Cookie")
		if err := c.authorize(o.Out.Header); err != nil {
			log.Error("no token", "err", err)
		}
		b.offer(o.Out.Header)
	}})
	if err != nil {
		return nil, err
	}
	page, err := fs.Sub(pages, "page")
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /api/v1/namespaces/{namespace}/pods/{pod}/exec", showRefusals(log, exec))
	mux.Handle("GET /", secured(http.FileServerFS(page)))
	chain := filters.NewChain(filters.Recover(log), filters.AccessLog(log), filters.OnResponse(filters.ResponseHooks{Header: b.accept}))
	return &terminal{chain.Then(mux), group}, nil
}

func (t *terminal) close() { t.group.Close() }

// secured restricts the page to this server.
func secured(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; frame-ancestors 'none'; form-action 'none'")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-cache")
		next.ServeHTTP(w, r)
	})
}
