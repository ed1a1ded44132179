package main

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/quic-go/quic-go/http3"

	"github.com/culvert-go/culvert/examples/metrics/prom"
	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/server"
	"github.com/culvert-go/culvert/wsupgrade"
)

// Edge serves what a Config describes.
type Edge struct {
	targets []targets
	tunnels *wsupgrade.Registry
	streams *streams
	overTCP *server.Server
	over3   *http3.Server
	metrics *server.Server
	grace   time.Duration
}

// New makes an Edge. Serve closes it.
func New(c Config, logger *slog.Logger) (_ *Edge, err error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	certificate, err := tls.LoadX509KeyPair(c.Cert, c.Key)
	if err != nil {
		return nil, fmt.Errorf("cert and key: %w", err)
	}
	e := &Edge{grace: c.grace(), streams: newStreams()}
	defer func() {
		if err != nil {
			e.close()
		}
	}()
	registry := prometheus.NewRegistry()
	routes, err := e.routes(c, registry)
	if err != nil {
		return nil, err
	}
	handler, err := e.chain(c, registry, logger, routes)
	if err != nil {
		return nil, err
	}
	e.servers(&tls.Config{Certificates: []tls.Certificate{certificate}}, handler)
	e.metrics = &server.Server{Handler: promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), ReadHeaderTimeout: 10 * time.Second}
	return e, nil
}

// routes returns the mux of the groups.
func (e *Edge) routes(c Config, registry *prometheus.Registry) (http.Handler, error) {
	var err error
	if e.tunnels, err = wsupgrade.NewRegistry(wsupgrade.RegistryOptions{Max: 10_000}); err != nil {
		return nil, err
	}
	origins, err := wsupgrade.AllowOrigins(c.Origins...)
	if err != nil {
		return nil, fmt.Errorf("origins: %w", err)
	}
	mux := http.NewServeMux()
	var groups prom.Groups
	for prefix, route := range c.Routes {
		t, err := newTargets(prefix, route)
		e.targets = append(e.targets, t)
		if err != nil {
			return nil, fmt.Errorf("routes: %s: %w", prefix, err)
		}
		groups = append(groups, t.Group)
		upgrades, err := wsupgrade.New(wsupgrade.Options{
			Dial: t.Dial, TLSConfig: t.TLSConfig(),
			Registry: e.tunnels, CheckOrigin: origins, PingInterval: 30 * time.Second,
		})
		if err != nil {
			return nil, err
		}
		p, err := proxy.New(proxy.Options{Upstream: t.Group, Upgrades: upgrades})
		if err != nil {
			return nil, err
		}
		mux.Handle(prefix, p)
	}
	return mux, registry.Register(groups)
}

func (e *Edge) chain(c Config, registry *prometheus.Registry, logger *slog.Logger, next http.Handler) (http.Handler, error) {
	metrics, err := prom.New(registry)
	if err != nil {
		return nil, err
	}
	if c.MaxBody == 0 {
		c.MaxBody = 64 << 20
	}
	limit, err := filters.BodyLimit(c.MaxBody)
	if err != nil {
		return nil, err
	}
	compress, err := filters.Compress(filters.CompressOptions{})
	if err != nil {
		return nil, err
	}
	return filters.NewChain(filters.AccessLog(logger), filters.Observe(metrics), limit, compress, e.streams.filter).Then(next), nil
}

// servers makes the servers of TCP, whose responses name the other one, and QUIC.
func (e *Edge) servers(certificate *tls.Config, handler http.Handler) {
	e.over3 = &http3.Server{
		Handler: handler, IdleTimeout: 2 * time.Minute,
		TLSConfig: http3.ConfigureTLSConfig(certificate.Clone()),
	}
	advertise := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = e.over3.SetQUICHeaders(w.Header()) // an error: it does not listen yet
		handler.ServeHTTP(w, r)
	})
	e.overTCP = &server.Server{
		Handler: advertise, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		TLSConfig: certificate.Clone(), MaxConns: 10_000,
		HTTP2: &http.HTTP2Config{WriteByteTimeout: time.Minute},
	}
}

func (e *Edge) close() {
	for _, t := range e.targets {
		t.close()
	}
}
