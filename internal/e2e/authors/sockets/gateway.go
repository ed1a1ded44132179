package main

import (
	"bytes"
	"context"
	"net/http"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
	"github.com/culvert-go/culvert/wsupgrade"
)

type gateway struct {
	http.Handler
	tunnels *wsupgrade.Registry
	targets *upstream.Dynamic
}

func newGateway(c config) (*gateway, error) {
	targets, err := upstream.NewDynamic(upstream.DynamicOptions{
		Choose: func(r *http.Request) (upstream.Target, error) { return userOf(r).target, nil },
		Group:  upstream.Options{Name: "users", DialTimeout: 5 * time.Second},
	})
	if err != nil {
		return nil, err
	}
	g := &gateway{targets: targets}
	if g.tunnels, err = wsupgrade.NewRegistry(wsupgrade.RegistryOptions{
		Max: c.max, MaxPerKey: c.perUser,
		Key: func(r *http.Request) string { return userOf(r).Name },
	}); err != nil {
		return nil, err
	}
	origins, err := wsupgrade.AllowOrigins(c.origins...)
	if err != nil {
		return nil, err
	}
	upgrades, err := wsupgrade.New(wsupgrade.Options{
		Registry:     g.tunnels,
		CheckOrigin:  origins,
		Dial:         upstream.Dial,
		DialTLS:      upstream.Dial,
		IdleTimeout:  c.idle,
		PingInterval: 30 * time.Second,
		Observe:      func(r *http.Request) *wsupgrade.Observer { return c.observer(userOf(r)) },
	})
	if err != nil {
		return nil, err
	}
	sockets, err := proxy.New(proxy.Options{
		Upstream: targets,
		Upgrades: upgrades,
		Rewrite: func(o *proxy.Outbound) {
			o.SetXForwarded()
			o.Out.Header.Set("X-User", userOf(o.In).Name)
			o.Out.Header.Del("Cookie") // the session is the gateway's own
		},
	})
	if err != nil {
		return nil, err
	}
	g.Handler = filters.NewChain(filters.AccessLog(c.log), c.authenticate).Then(sockets)
	return g, nil
}

// drain ends all WebSockets with a Close frame, and waits for them.
func (g *gateway) drain(ctx context.Context) error { return g.tunnels.Drain(ctx, wsupgrade.GoingAway) }

func (g *gateway) close() { g.targets.Close() }

type userKey struct{}

// authenticate serves those whose session is known.
func (c config) authenticate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		cookie, err := r.Cookie("session")
		if err != nil {
			http.Error(w, "no session", http.StatusUnauthorized)
			return
		}
		u, ok := c.users[cookie.Value]
		if !ok {
			http.Error(w, "the session has ended", http.StatusUnauthorized)
			return
		}
		if result := filters.ResultFrom(r.Context()); result != nil {
			result.User = u.Name // for the log
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), userKey{}, u)))
	})
}

func userOf(r *http.Request) user {
	u, _ := r.Context().Value(userKey{}).(user)
	return u
}

// observer refuses messages with what is forbidden, and logs how many there were.
func (c config) observer(u user) *wsupgrade.Observer {
	if c.forbidden == "" {
		return nil
	}
	return &wsupgrade.Observer{
		Inflate:    true,
		MaxMessage: 1 << 20,
		Message: func(m *wsupgrade.Message) error {
			if m.FromClient && m.Type == wsupgrade.Text && bytes.Contains(m.Data, []byte(c.forbidden)) {
				c.log.Warn("message refused", "user", u.Name, "bytes", len(m.Data))
				return &wsupgrade.CloseError{Code: wsupgrade.PolicyViolation, Reason: "not here"}
			}
			return nil
		},
	}
}

var _ culvert.Filter = config{}.authenticate
