package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/server"
	"github.com/culvert-go/culvert/upstream"
	"github.com/culvert-go/culvert/watchcodec"
	"github.com/culvert-go/culvert/wsupgrade"
)

// Gateway serves what a Config describes.
type Gateway struct {
	server     *server.Server
	apiserver  *upstream.Group
	tunnels    *wsupgrade.Registry
	watches    context.Context
	endWatches context.CancelFunc
	grace      time.Duration
}

// New makes a Gateway. Serve closes it.
func New(c Config, logger *slog.Logger) (*Gateway, error) {
	users, err := c.users()
	if err != nil {
		return nil, err
	}
	token, err := os.ReadFile(c.Token)
	if err != nil {
		return nil, fmt.Errorf("token: %w", err)
	}
	config, err := c.tlsConfig()
	if err != nil {
		return nil, err
	}
	certificate, err := tls.LoadX509KeyPair(c.Cert, c.Key)
	if err != nil {
		return nil, fmt.Errorf("cert and key: %w", err)
	}
	g := &Gateway{grace: c.grace()}
	forward, err := g.forward(c.Server, config, strings.TrimSpace(string(token)))
	if err != nil {
		return nil, err
	}
	hide, err := watchcodec.NewFilter(watchcodec.FilterOptions{Rewriter: visible, AllowWrites: true})
	if err != nil {
		g.apiserver.Close()
		return nil, err
	}
	g.watches, g.endWatches = context.WithCancel(context.Background())
	g.server = &server.Server{
		Handler: filters.NewChain(
			filters.AccessLog(logger, audit), filters.RefuseAmbiguous(filters.AnyAmbiguity&^filters.RepeatedParameters),
			authenticate(users), g.endable, authorize, hide,
		).Then(forward),
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{certificate}},
		ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		HTTP2: &http.HTTP2Config{WriteByteTimeout: time.Minute, SendPingTimeout: time.Minute},
	}
	return g, nil
}

// forward makes the proxy to the API server.
func (g *Gateway) forward(addr string, config *tls.Config, token string) (http.Handler, error) {
	var err error
	if g.apiserver, err = upstream.New(upstream.Options{Name: "apiserver", Scheme: "https", TLSConfig: config}, upstream.Target{Addr: addr}); err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	if g.tunnels, err = wsupgrade.NewRegistry(wsupgrade.RegistryOptions{}); err != nil {
		return nil, err
	}
	upgrades, err := wsupgrade.New(wsupgrade.Options{
		Protocols: []string{"websocket", "SPDY/3.1"}, TLSConfig: config, Registry: g.tunnels,
	})
	if err != nil {
		return nil, err
	}
	return proxy.New(proxy.Options{Upstream: g.apiserver, Upgrades: upgrades, Rewrite: impersonate(token)})
}

// audit has the attributes of the log that Kubernetes' audit has.
func audit(r *http.Request, o filters.Observation) []slog.Attr {
	req, ok := watchcodec.Classify(r)
	if !ok {
		return nil
	}
	attrs := []slog.Attr{slog.String("verb", req.Verb), slog.String("resource", req.Resource), slog.String("namespace", req.Namespace), slog.String("name", req.Name)}
	if req.Subresource != "" {
		attrs = append(attrs, slog.String("subresource", req.Subresource))
	}
	return attrs
}

// endable ends watches when the gateway stops: their clients watch again.
func (g *Gateway) endable(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		req, ok := watchcodec.Classify(r)
		if !ok || req.Verb != "watch" {
			next.ServeHTTP(w, r)
			return
		}
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(g.watches, cancel)()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// Serve serves until ctx ends, and then ends what is under way within the grace.
func (g *Gateway) Serve(ctx context.Context, l net.Listener) error {
	defer g.apiserver.Close()
	ended := make(chan error, 1)
	go func() { ended <- g.server.ServeTLS(l, "", "") }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), g.grace)
	defer cancel()
	g.endWatches()
	err := errors.Join(g.tunnels.Drain(grace, wsupgrade.GoingAway), g.server.Shutdown(grace))
	if err != nil {
		err = errors.Join(fmt.Errorf("requests were cut after %v: %w", g.grace, err), g.server.Close())
	}
	<-ended
	return err
}
