package proxy_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
	"github.com/culvert-go/culvert/wsupgrade"
)

// pickerFunc is a program's own Picker.
type pickerFunc func(ctx context.Context, r *http.Request, tried ...upstream.Lease) (upstream.Lease, error)

func (f pickerFunc) Pick(ctx context.Context, r *http.Request, tried ...upstream.Lease) (upstream.Lease, error) {
	return f(ctx, r, tried...)
}

// byGroup picks by the first segment of the path.
func byGroup(groups map[string]*upstream.Group) pickerFunc {
	return func(ctx context.Context, r *http.Request, tried ...upstream.Lease) (upstream.Lease, error) {
		name, _, _ := strings.Cut(r.URL.Path[1:], "/")
		return groups[name].Pick(ctx, r, tried...)
	}
}

// A Lease that a Picker returns beside an error is given back: its target is not in use for ever.
func TestPickerOfLeaseAndError(t *testing.T) {
	g := groupOf(t, upstream.Options{}, upstream.Target{Addr: "192.0.2.1:80", MaxConns: 1})
	defer g.Close()
	p, err := proxy.New(proxy.Options{Upstream: pickerFunc(func(ctx context.Context, r *http.Request, tried ...upstream.Lease) (upstream.Lease, error) {
		lease, err := g.Pick(ctx, r, tried...)
		if err != nil {
			t.Error(err)
		}
		return lease, errors.New("but it is not to be used")
	})})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		w := httptest.NewRecorder()
		p.ServeHTTP(w, httptest.NewRequest("GET", "http://gateway.test/", nil))
		if w.Code != http.StatusInternalServerError || g.InFlight() != 0 {
			t.Errorf("status %d, %d in flight", w.Code, g.InFlight())
		}
	}
}

// A Picker may choose among groups of different schemes and transports: exchanges and upgrades run by the group that it has
// chosen, and records name that one.
func TestPickerOfGroups(t *testing.T) {
	leaktest.Check(t)
	echo := func(name string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Upgrade") == "" {
				w.Header().Set("From", name+" "+r.Proto+" "+r.URL.Path)
				return
			}
			c, buffered, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			_, _ = c.Write([]byte(switching))
			early := make([]byte, 6)
			_, _ = io.ReadFull(buffered, early)
			_, _ = c.Write([]byte(name + " got " + string(early)))
		})
	}
	plain, secure, other := httptest.NewServer(echo("plain")), httptest.NewUnstartedServer(echo("secure")), httptest.NewServer(echo("other"))
	secure.EnableHTTP2 = true
	secure.StartTLS()
	for _, s := range []*httptest.Server{plain, secure, other} {
		t.Cleanup(s.Close)
	}
	roots := &tls.Config{RootCAs: secure.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs, ServerName: "example.com"}
	groups := map[string]*upstream.Group{
		"plain":  groupAt(t, upstream.Options{Name: "plain"}, plain.Listener.Addr().String()),
		"secure": groupAt(t, upstream.Options{Name: "secure", Scheme: "https", TLSConfig: roots}, secure.Listener.Addr().String()),
		"h2":     groupAt(t, upstream.Options{Name: "h2", Scheme: "https", Protocol: upstream.HTTP2, TLSConfig: roots}, secure.Listener.Addr().String()),
		"own":    groupAt(t, upstream.Options{Name: "own", Transport: new(http.Transport)}, other.Listener.Addr().String()),
	}
	t.Cleanup(func() { groups["own"].Transport().(*http.Transport).CloseIdleConnections() })
	records := make(chan culvert.Result, 1)
	p := newProxy(t, anyPath, proxy.Options{Upstream: byGroup(groups), OnError: func(_ *http.Request, err *culvert.Error) { t.Error(err) }})
	front := wiretest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, result := filters.WithNewResult(r.Context())
		p.ServeHTTP(w, r.WithContext(ctx))
		records <- *result
	}))
	t.Cleanup(front.Close)
	for _, test := range []struct{ name, from string }{
		{"plain", "plain HTTP/1.1"}, {"secure", "secure HTTP/1.1"}, {"h2", "secure HTTP/2.0"}, {"own", "other HTTP/1.1"},
	} {
		for range 2 {
			resp, _ := wiretest.Get(t, front.URL+"/"+test.name+"/a%2Fb")
			if got := resp.Header.Get("From"); got != test.from+" /"+test.name+"/a/b" {
				t.Errorf("%s: from %q", test.name, got)
			}
			if record := wiretest.Await(t, records, "a record"); record.Upstream != test.name || len(record.Attempts) != 1 {
				t.Errorf("%s: the record is %+v", test.name, record)
			}
		}
		client := wiretest.Dial(t, front.Listener.Addr().String())
		client.Send(strings.Replace(upgrade, "/ws%2F?a=%zz", "/"+test.name+"/", 1) + "resize")
		if got := client.Header(); !strings.HasPrefix(got, "HTTP/1.1 101 ") {
			t.Fatalf("%s: %s", test.name, got)
		}
		want, _, _ := strings.Cut(test.from, " ")
		client.Receive(want + " got resize")
		client.End()
		client.Rest()
		wiretest.Await(t, records, "a record")
	}
}

// What a Picker of a program's own does wrong is an error of its own, and blames no target; an exchange ends also where it
// returns the target that has failed.
func TestPickerFaults(t *testing.T) {
	leaktest.Check(t)
	dead := groupOf(t, upstream.Options{Name: "dead"}, upstream.Target{Addr: wiretest.Unused(t)}, upstream.Target{Addr: wiretest.Unused(t)})
	upgrades, err := wsupgrade.New(wsupgrade.Options{Dial: upstream.Dial, DialTLS: upstream.Dial})
	if err != nil {
		t.Fatal(err)
	}
	picks := 0
	for _, test := range []struct {
		name   string
		pick   pickerFunc
		scheme string
		kind   culvert.ErrorKind
		target string
	}{
		{"no lease", func(context.Context, *http.Request, ...upstream.Lease) (l upstream.Lease, _ error) { return l, nil }, "", culvert.Internal, ""},
		{"an error", func(context.Context, *http.Request, ...upstream.Lease) (l upstream.Lease, _ error) {
			return l, errors.New("no tenant")
		}, "", culvert.Internal, ""},
		{"a kind", func(context.Context, *http.Request, ...upstream.Lease) (l upstream.Lease, _ error) {
			return l, &culvert.Error{Kind: culvert.Forbidden}
		}, "", culvert.Forbidden, ""},
		{"the same", func(ctx context.Context, r *http.Request, _ ...upstream.Lease) (upstream.Lease, error) {
			if picks++; picks > 100 {
				t.Fatal("the exchange does not end")
			}
			return dead.Pick(ctx, r)
		}, "", culvert.DialFailed, "127.0.0.1"},
		{"another scheme", func(ctx context.Context, r *http.Request, _ ...upstream.Lease) (upstream.Lease, error) {
			return dead.Pick(ctx, r)
		}, "https", culvert.Internal, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			var failed *culvert.Error
			p := newProxy(t, anyPath, proxy.Options{Upstream: test.pick, Upgrades: upgrades, Rewrite: func(o *proxy.Outbound) {
				if o.Out.URL.Scheme != "" {
					t.Errorf("the scheme is %q", o.Out.URL.Scheme)
				}
				o.Out.URL.Scheme = test.scheme
			}, OnError: func(_ *http.Request, err *culvert.Error) { failed = err }})
			for _, fields := range []http.Header{nil, {"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"13"}, "Sec-Websocket-Key": {"dGhlIHNhbXBsZSBub25jZQ=="}}} {
				if fields != nil && test.scheme != "" {
					continue // the target of an upgrade may be reached by another scheme
				}
				failed = nil
				r := httptest.NewRequest("GET", "/", nil)
				r.Header = fields
				if fields == nil {
					r.Header = http.Header{}
				}
				p.ServeHTTP(httptest.NewRecorder(), r)
				if failed == nil || failed.Kind != test.kind || !strings.HasPrefix(failed.Target, test.target) {
					t.Errorf("%v: failure %#v", fields, failed)
				}
			}
		})
	}
	for s := range dead.Targets() {
		if s.InFlight != 0 {
			t.Errorf("leases are held: %+v", s)
		}
	}
	if _, err := proxy.New(proxy.Options{Upstream: (*upstream.Group)(nil)}); err == nil {
		t.Error("a nil *Group is accepted")
	}
}

// A target that a request names is dialled only at an address that is allowed, by exchanges and upgrades.
func TestAllowAddr(t *testing.T) {
	leaktest.Check(t)
	reached := make(chan string, 10)
	target := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { reached <- r.URL.Path }))
	defer target.Close()
	_, port, _ := strings.Cut(target.Listener.Addr().String(), ":")
	named, err := upstream.NewDynamic(upstream.DynamicOptions{
		Choose: func(r *http.Request) (upstream.Target, error) { return upstream.Target{Addr: r.Header.Get("To")}, nil },
		Group:  upstream.Options{Name: "named", AllowAddr: upstream.PublicAddr},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer named.Close()
	var failed *culvert.Error
	p := newProxy(t, anyPath, proxy.Options{Upstream: named, OnError: func(_ *http.Request, err *culvert.Error) { failed = err }})
	for _, to := range []string{"127.0.0.1:" + port, "localhost:" + port, "[::1]:" + port, "[::ffff:127.0.0.1]:" + port, "unix:/run/docker.sock"} {
		for _, upgrade := range []bool{false, true} {
			failed = nil
			r := httptest.NewRequest("GET", "/"+to, nil)
			r.Header.Set("To", to)
			if upgrade {
				for name, value := range map[string]string{"Connection": "Upgrade", "Upgrade": "websocket", "Sec-Websocket-Version": "13", "Sec-Websocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="} {
					r.Header.Set(name, value)
				}
			}
			w := httptest.NewRecorder()
			p.ServeHTTP(w, r)
			if failed == nil || failed.Kind != culvert.Forbidden || w.Code != http.StatusForbidden || failed.BytesSent {
				t.Errorf("%s, upgrade %v: %d, %#v", to, upgrade, w.Code, failed)
			}
		}
	}
	select {
	case path := <-reached:
		t.Errorf("a request has reached the target: %s", path)
	default:
	}
	for s := range named.Targets() {
		if s.Fails != 0 || !s.Healthy {
			t.Errorf("a target that was not dialled is blamed: %+v", s)
		}
	}
}
