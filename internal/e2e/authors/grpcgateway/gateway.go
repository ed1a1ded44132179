package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/server"
	"github.com/culvert-go/culvert/upstream"
)

// Gateway serves what a Config describes.
type Gateway struct {
	server *server.Server
	groups map[string]*upstream.Group
	health *health.Server
	grace  time.Duration
}

// New makes a Gateway. Serve closes it.
func New(c Config, logger *slog.Logger, provider trace.TracerProvider) (_ *Gateway, err error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	g := &Gateway{groups: map[string]*upstream.Group{}, health: health.NewServer(), grace: time.Duration(c.Grace)}
	if g.grace == 0 {
		g.grace = 30 * time.Second
	}
	defer func() {
		if err != nil {
			g.close()
		}
	}()
	for name, group := range c.Groups {
		if g.groups[name], err = newGroup(name, group); err != nil {
			return nil, fmt.Errorf("groups: %s: %w", name, err)
		}
	}
	traces := tracing{tracer: provider.Tracer("grpcgateway"), propagator: propagation.TraceContext{}}
	calls := router{}
	for path, route := range c.Routes {
		if calls[path], err = newRoute(c, route, g.groups[route.Group], traces); err != nil {
			return nil, fmt.Errorf("routes: %s: %w", path, err)
		}
	}
	own := grpc.NewServer()
	healthpb.RegisterHealthServer(own, g.health)
	calls["/"+healthpb.Health_ServiceDesc.ServiceName+"/"] = own
	spans := otelhttp.NewMiddleware("grpcgateway",
		otelhttp.WithTracerProvider(provider), otelhttp.WithPropagators(traces.propagator),
		otelhttp.WithSpanNameFormatter(func(_ string, r *http.Request) string { return r.URL.Path[1:] }))
	handler := filters.NewChain(
		onlyCalls, spans, recordStatus, filters.AccessLog(logger, attributes), filters.RefuseAmbiguous(filters.AnyAmbiguity),
	).Then(calls)
	g.server, err = newServer(c, handler)
	return g, err
}

func newServer(c Config, handler http.Handler) (*server.Server, error) {
	s := &server.Server{
		Handler:           handler,
		Protocols:         new(http.Protocols),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       5 * time.Minute,
		HTTP2:             &http.HTTP2Config{WriteByteTimeout: time.Minute, SendPingTimeout: time.Minute},
	}
	if c.Cert == "" {
		s.Protocols.SetUnencryptedHTTP2(true)
		return s, nil
	}
	certificate, err := tls.LoadX509KeyPair(c.Cert, c.Key)
	if err != nil {
		return nil, err
	}
	s.Protocols.SetHTTP2(true)
	s.TLSConfig = &tls.Config{Certificates: []tls.Certificate{certificate}}
	return s, nil
}

func newGroup(name string, g Group) (*upstream.Group, error) {
	config, err := g.tlsConfig()
	if err != nil {
		return nil, err
	}
	o := upstream.Options{
		Name: name, Protocol: upstream.H2C, Balance: upstream.LeastConn(),
		HeaderTimeout: -1,              // the header of a stream is sent with its first message
		PingInterval:  6 * time.Minute, // servers end connections with more than a few pings within 5 minutes
	}
	if config != nil {
		o.Scheme, o.Protocol, o.TLSConfig = "https", upstream.HTTP2, config
	}
	if g.Health != nil {
		o.Check = &upstream.Check{GRPC: true, GRPCService: *g.Health, Interval: time.Duration(g.CheckInterval)}
	}
	targets := make([]upstream.Target, len(g.Targets))
	for i, addr := range g.Targets {
		targets[i] = upstream.Target{Addr: addr}
	}
	return upstream.New(o, targets...)
}

// newRoute returns the handler of the calls of a route.
func newRoute(c Config, r Route, group *upstream.Group, traces tracing) (http.Handler, error) {
	o := proxy.Options{
		Upstream:    group,
		Timeout:     time.Duration(r.Timeout),
		ReadTimeout: -1, // a client may be silent on a stream for hours
		OnAttempt:   traces.attempt,
	}
	if !r.Idempotent {
		return proxy.New(o)
	}
	budget, err := proxy.NewRetryBudget(0.2, 10)
	if err != nil {
		return nil, err
	}
	o.Retry = proxy.Retry{Errors: true, NonIdempotent: true, Statuses: []int{http.StatusServiceUnavailable}, Budget: budget}
	o.ModifyResponse = restoreUnavailable
	transport := &unavailable{next: group.Transport()}
	o.Transport = transport
	if r.Hedge != 0 {
		if c.MaxMessage == 0 {
			c.MaxMessage = 4 << 20
		}
		o.RequestBuffer = &proxy.Buffer{Memory: c.MaxMessage}
		o.Upstream = leasing{group}
		transport.next = &hedging{group: group, next: group.Transport(), after: time.Duration(r.Hedge), traces: traces}
	}
	p, err := proxy.New(o)
	if err != nil || r.Hedge == 0 {
		return p, err
	}
	return withLease(p), nil
}

// Serve serves until ctx ends, and then ends calls within the grace.
func (g *Gateway) Serve(ctx context.Context, l net.Listener) error {
	defer g.close()
	ended := make(chan error, 1)
	go func() {
		if g.server.TLSConfig != nil {
			ended <- g.server.ServeTLS(l, "", "")
		} else {
			ended <- g.server.Serve(l)
		}
	}()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	g.health.Shutdown() // balancers in front send no more calls
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), g.grace)
	defer cancel()
	err := g.server.Shutdown(grace)
	if err != nil {
		err = errors.Join(fmt.Errorf("calls were cut after %v", g.grace), g.server.Close())
	}
	<-ended
	return err
}

func (g *Gateway) close() {
	for _, group := range g.groups {
		if group != nil {
			_ = group.Close()
		}
	}
}

// router has the handlers by method or service.
type router map[string]http.Handler

// ServeHTTP implements http.Handler.
func (calls router) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := r.URL.EscapedPath()
	handler := calls[path]
	if handler == nil {
		handler = calls[path[:strings.LastIndexByte(path, '/')+1]]
	}
	if handler == nil {
		grpcStatus(w, "12", "the gateway does not know the method "+path)
		return
	}
	handler.ServeHTTP(w, r)
}

// grpcStatus responds to a call.
func grpcStatus(w http.ResponseWriter, code, message string) {
	w.Header().Set("Content-Type", "application/grpc")
	w.Header().Set("Grpc-Status", code)
	w.Header().Set("Grpc-Message", url.PathEscape(message))
	w.WriteHeader(http.StatusOK)
}

// onlyCalls refuses what is no gRPC call.
func onlyCalls(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || !strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc") || !strings.HasPrefix(r.URL.Path, "/") {
			http.Error(w, "this is a gateway for gRPC", http.StatusUnsupportedMediaType)
			return
		}
		next.ServeHTTP(w, r)
	})
}
