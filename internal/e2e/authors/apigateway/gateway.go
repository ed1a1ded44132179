package main

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/jwtauth/v5"
	"github.com/rs/cors"

	"github.com/culvert-go/culvert"
	ratelimitredis "github.com/culvert-go/culvert/examples/ratelimit-redis"
	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

type gateway struct {
	http.Handler
	groups []*upstream.Group
}

func (g *gateway) close() {
	for _, group := range g.groups {
		group.Close()
	}
}

// proxy returns a proxy to a group of its own.
func (g *gateway) proxy(o proxy.Options, name string, targets []upstream.Target) (*proxy.Proxy, error) {
	group, err := upstream.New(upstream.Options{Name: name, Balance: upstream.First(), DialTimeout: 2 * time.Second}, targets...)
	if err != nil {
		return nil, err
	}
	g.groups = append(g.groups, group)
	o.Upstream = group
	return proxy.New(o)
}

func newGateway(c config) (_ *gateway, err error) {
	g := &gateway{}
	defer func() {
		if err != nil {
			g.close()
		}
	}()
	retry := proxy.Retry{Errors: true, Statuses: []int{http.StatusServiceUnavailable}}
	orders, err := g.proxy(proxy.Options{Retry: retry, Rewrite: func(o *proxy.Outbound) {
		o.SetXForwarded()
		o.StripPrefix("/orders")
		o.Out.Header.Del("Authorization") // the orders go by X-User and X-Plan
		o.Out.Header.Set("X-User", subject(o.In))
	}}, "orders", c.orders)
	if err != nil {
		return nil, err
	}
	catalog, err := g.proxy(proxy.Options{Retry: retry}, "catalog", c.catalog)
	if err != nil {
		return nil, err
	}
	authorizer, err := g.proxy(proxy.Options{}, "authorize", c.authorize)
	if err != nil {
		return nil, err
	}
	authorize, err := filters.ForwardAuth(filters.ForwardAuthOptions{To: authorizer, URI: "/decide", ResponseFields: []string{"X-Plan"}})
	if err != nil {
		return nil, err
	}
	bodies, err := filters.BodyLimit(c.maxBody)
	if err != nil {
		return nil, err
	}
	byUser, err := limit(c, "user", subject)
	if err != nil {
		return nil, err
	}
	byAddress, err := limit(c, "address", nil)
	if err != nil {
		return nil, err
	}
	id, err := filters.RequestID(filters.RequestIDOptions{})
	if err != nil {
		return nil, err
	}
	tokens := jwtauth.New("HS256", c.secret, nil)

	r := chi.NewRouter()
	r.Use(filters.AccessLog(c.log, route)) // inside of chi, which knows the route
	r.Use(filters.Recover(c.log))
	r.Use(cors.New(cors.Options{AllowedOrigins: c.origins, AllowedMethods: []string{"GET", "POST", "PUT", "DELETE"},
		AllowedHeaders: []string{"Authorization", "Content-Type", "Idempotency-Key"}, ExposedHeaders: []string{"RateLimit", "Retry-After"}}).Handler)
	r.Use(bodies)
	r.Group(func(r chi.Router) {
		r.Use(jwtauth.Verify(tokens, jwtauth.TokenFromHeader), jwtauth.Authenticator(tokens), named, byUser, authorize)
		r.Handle("/orders", orders)
		r.Handle("/orders/*", orders)
	})
	r.With(byAddress).Handle("/catalog/*", catalog)
	g.Handler = filters.NewChain(id).Then(r)
	return g, nil
}

// limit limits the rate of what key returns, by a name.
func limit(c config, name string, key func(*http.Request) string) (culvert.Filter, error) {
	store, err := ratelimitredis.New(c.redis, "apigateway:"+name+":")
	if err != nil {
		return nil, err
	}
	return filters.RateLimit(filters.RateLimitOptions{
		Requests: c.rate, Per: time.Hour, Key: key, Policy: name,
		Store: store, StoreTimeout: 500 * time.Millisecond, Log: c.log,
	})
}

// subject returns the user of a request whose token was verified.
func subject(r *http.Request) string {
	token, _, err := jwtauth.FromContext(r.Context())
	if err != nil || token == nil {
		return ""
	}
	return token.Subject()
}

// named refuses tokens without a user, and has the log name the others'.
func named(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user := subject(r)
		if user == "" {
			http.Error(w, "the token has no subject", http.StatusUnauthorized)
			return
		}
		if result := filters.ResultFrom(r.Context()); result != nil {
			result.User = user
		}
		next.ServeHTTP(w, r)
	})
}

// route returns the log's attributes of the gateway's own.
func route(r *http.Request, o filters.Observation) []slog.Attr {
	attrs := []slog.Attr{slog.String("route", chi.RouteContext(r.Context()).RoutePattern()), slog.Int("attempts", len(o.Result.Attempts))}
	if agent := r.UserAgent(); agent != "" {
		attrs = append(attrs, slog.String("agent", agent[:min(len(agent), 200)]))
	}
	return attrs
}
