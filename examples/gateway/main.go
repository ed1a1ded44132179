// Command gateway is a gateway of one's own: TLS, two upstream groups with health
// checks, compression, a log and metrics.
package main

import (
	"log"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/culvert-go/culvert/cachectl"
	"github.com/culvert-go/culvert/examples/metrics/prom"
	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/server"
	"github.com/culvert-go/culvert/upstream"
)

func main() {
	handler, err := gateway(
		[]upstream.Target{{Addr: "127.0.0.1:9001"}, {Addr: "127.0.0.1:9002"}},
		[]upstream.Target{{Addr: "127.0.0.1:9101", MaxConns: 100}, {Addr: "127.0.0.1:9102", Backup: true}},
		slog.New(slog.NewJSONHandler(os.Stdout, nil)))
	if err != nil {
		log.Fatal(err)
	}
	s := &server.Server{Addr: ":8443", Handler: handler, ReadHeaderTimeout: 10 * time.Second,
		HTTP2: &http.HTTP2Config{WriteByteTimeout: time.Minute}} // for clients that read nothing
	log.Fatal(serve(s, os.Stderr, "cert.pem", "key.pem")) // makes a certificate if there is none
}

// gateway serves /api/ from one group, everything else from another, and /metrics
// by itself.
func gateway(pages, api []upstream.Target, logger *slog.Logger) (http.Handler, error) {
	check := &upstream.Check{Path: "/healthz"}
	pageGroup, err := upstream.New(upstream.Options{Name: "pages", Check: check,
		Balance: upstream.Sticky(upstream.StickyOptions{Secret: []byte(os.Getenv("STICKY_SECRET"))})}, pages...)
	if err != nil {
		return nil, err
	}
	apiGroup, err := upstream.New(upstream.Options{Name: "api", Check: check, Balance: upstream.LeastConn(), Queue: 200}, api...)
	if err != nil {
		return nil, err
	}
	pageProxy, err := proxy.New(proxy.Options{Upstream: pageGroup})
	if err != nil {
		return nil, err
	}
	apiProxy, err := proxy.New(proxy.Options{Upstream: apiGroup, Retry: proxy.Retry{Errors: true, Statuses: []int{502, 503}}})
	if err != nil {
		return nil, err
	}
	compress, err := filters.Compress(filters.CompressOptions{})
	if err != nil {
		return nil, err
	}
	unsticky, err := cachectl.New(cachectl.ErrorPages())
	if err != nil {
		return nil, err
	}
	registry := prometheus.NewRegistry()
	metrics, err := prom.New(registry)
	if err != nil {
		return nil, err
	}
	registry.MustRegister(prom.Groups{pageGroup, apiGroup})
	mux := http.NewServeMux()
	mux.Handle("/", pageProxy)
	mux.Handle("/api/", apiProxy)
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	return filters.NewChain(filters.AccessLog(logger), filters.Observe(metrics), unsticky, compress).Then(mux), nil
}
