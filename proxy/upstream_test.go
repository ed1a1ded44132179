package proxy_test

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
)

func TestBadOptions(t *testing.T) {
	good := proxy.Target{Addr: "127.0.0.1:80"}
	tests := []struct {
		want    string
		o       proxy.UpstreamOptions
		targets []proxy.Target
	}{
		{`proxy: upstream "app": no target that is not a backup`, proxy.UpstreamOptions{}, nil},
		{`proxy: upstream "app": no target that is not a backup`, proxy.UpstreamOptions{}, []proxy.Target{{Addr: "a:1", Backup: true}}},
		{`proxy: upstream "app": scheme "ftp" is neither http nor https`, proxy.UpstreamOptions{Scheme: "ftp"}, []proxy.Target{good}},
		{`proxy: upstream "app": negative DialTimeout -1ns`, proxy.UpstreamOptions{DialTimeout: -1}, []proxy.Target{good}},
		{`proxy: upstream "app": unknown balance 7`, proxy.UpstreamOptions{Balance: 7}, []proxy.Target{good}},
		{`proxy: upstream "app": target "host": address host: missing port in address`, proxy.UpstreamOptions{}, []proxy.Target{{Addr: "host"}}},
		{`proxy: upstream "app": target ":80": host and port are both needed`, proxy.UpstreamOptions{}, []proxy.Target{{Addr: ":80"}}},
		{`proxy: upstream "app": target "a:": host and port are both needed`, proxy.UpstreamOptions{}, []proxy.Target{{Addr: "a:"}}},
		{`proxy: upstream "app": target "a:1": negative weight -1`, proxy.UpstreamOptions{}, []proxy.Target{{Addr: "a:1", Weight: -1}}},
		{`proxy: upstream "app": target "a:1": negative FailTimeout -1s`, proxy.UpstreamOptions{}, []proxy.Target{{Addr: "a:1", FailTimeout: -time.Second}}},
		{`proxy: upstream "app": target "a:1": a backup is not possible with IPHash`, proxy.UpstreamOptions{Balance: proxy.IPHash}, []proxy.Target{good, {Addr: "a:1", Backup: true}}},
	}
	for _, test := range tests {
		test.o.Name = "app"
		u, err := proxy.NewUpstream(test.o, test.targets...)
		if u != nil || err == nil || err.Error() != test.want {
			t.Errorf("error %v, want %s", err, test.want)
		}
	}
	if p, err := proxy.New(proxy.Options{}); p != nil || err == nil || err.Error() != "proxy: Options.Upstream is nil" {
		t.Errorf("error %v", err)
	}
}

// asked is a Transport that notes which target each request goes to, and fails
// for the targets that are broken.
type asked struct {
	order  []string
	broken map[string]bool
}

func (a *asked) RoundTrip(r *http.Request) (*http.Response, error) {
	host, _, _ := strings.Cut(r.URL.Host, ":")
	a.order = append(a.order, host)
	if a.broken[host] {
		return nil, io.ErrUnexpectedEOF
	}
	return &http.Response{StatusCode: 204, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
}

// ask sends n requests from the address and returns the targets that they went to.
func (a *asked) ask(p http.Handler, n int, from string) string {
	a.order = nil
	for range n {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = from
		p.ServeHTTP(httptest.NewRecorder(), r)
	}
	return strings.Join(a.order, " ")
}

func overTargets(t *testing.T, balance proxy.Balance, targets ...proxy.Target) (*proxy.Proxy, *asked) {
	a := &asked{broken: map[string]bool{}}
	u := groupOf(t, proxy.UpstreamOptions{Name: "app", Balance: balance, Transport: a}, targets...)
	return newProxy(t, proxy.Options{Upstream: u}), a
}

const client = "192.0.2.7:1234"

// The order is that of nginx's smooth weighted round robin.
func TestRoundRobin(t *testing.T) {
	tests := []struct {
		targets []proxy.Target
		want    string
	}{
		{[]proxy.Target{{Addr: "a:1"}, {Addr: "b:1"}, {Addr: "c:1"}}, "a b c a b c a"},
		{[]proxy.Target{{Addr: "a:1", Weight: 5}, {Addr: "b:1"}, {Addr: "c:1"}}, "a a b a c a a"},
		{[]proxy.Target{{Addr: "a:1"}, {Addr: "b:1", Down: true}, {Addr: "c:1"}}, "a c a c a c a"},
		{[]proxy.Target{{Addr: "a:1"}, {Addr: "b:1", Backup: true}}, "a a a a a a a"},
		{[]proxy.Target{{Addr: "a:1", Down: true}, {Addr: "b:1", Backup: true}, {Addr: "c:1", Backup: true}}, "b c b c b c b"},
	}
	for _, test := range tests {
		p, a := overTargets(t, proxy.RoundRobin, test.targets...)
		if got := a.ask(p, 7, client); got != test.want {
			t.Errorf("asked %q, want %q", got, test.want)
		}
	}
}

// A target that fails MaxFails times is left out for FailTimeout, then gets one
// request to prove itself.
func TestFailTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, a := overTargets(t, proxy.RoundRobin,
			proxy.Target{Addr: "a:1", MaxFails: 2, FailTimeout: 5 * time.Second}, proxy.Target{Addr: "b:1"})
		steps := []struct {
			broken bool
			after  time.Duration
			want   string
		}{
			{true, 0, "a b a b b b"},               // two failures, then out
			{true, 5 * time.Second, "b b b b b b"}, // not yet
			{true, time.Nanosecond, "b a b b b b"}, // one try, in vain
			{true, 4 * time.Second, "b b b b b b"},
			{false, 1*time.Second + time.Nanosecond, "b a b a b a"}, // back, its weight grows again
		}
		for i, step := range steps {
			time.Sleep(step.after)
			a.broken["a"] = step.broken
			if got := a.ask(p, 6, client); got != step.want {
				t.Errorf("step %d: asked %q, want %q", i, got, step.want)
			}
		}
	})
}

func TestHealthRules(t *testing.T) {
	t.Run("MaxFails below 0 never leaves a target out", func(t *testing.T) {
		p, a := overTargets(t, proxy.RoundRobin, proxy.Target{Addr: "a:1", MaxFails: -1}, proxy.Target{Addr: "b:1"})
		a.broken["a"] = true
		if got := a.ask(p, 6, client); got != "a b a b a b" {
			t.Errorf("asked %q", got)
		}
	})
	t.Run("nor is the only target", func(t *testing.T) {
		p, a := overTargets(t, proxy.RoundRobin, proxy.Target{Addr: "a:1"})
		a.broken["a"] = true
		if got := a.ask(p, 3, client); got != "a a a" {
			t.Errorf("asked %q", got)
		}
	})
	t.Run("backups stand in for failing targets", func(t *testing.T) {
		p, a := overTargets(t, proxy.RoundRobin, proxy.Target{Addr: "a:1"}, proxy.Target{Addr: "b:1", Backup: true})
		a.broken["a"] = true
		if got := a.ask(p, 4, client); got != "a b b b" {
			t.Errorf("asked %q", got)
		}
	})
	t.Run("with all failing there is none", func(t *testing.T) {
		var failed failures
		a := &asked{broken: map[string]bool{"a": true, "b": true}}
		u := groupOf(t, proxy.UpstreamOptions{Name: "app", Transport: a}, proxy.Target{Addr: "a:1"}, proxy.Target{Addr: "b:1"})
		p := newProxy(t, proxy.Options{Upstream: u, OnError: failed.add})
		if got := a.ask(p, 4, client); got != "a b" {
			t.Errorf("asked %q", got)
		}
		if e := failed.all[2]; e.Kind != proxy.NoTarget || e.Target != "app" || e.Status() != 503 {
			t.Errorf("failure %#v", e)
		}
	})
}

// The choices are those that nginx 1.22 made for these addresses, given to it by
// the PROXY protocol.
func TestIPHash(t *testing.T) {
	p, a := overTargets(t, proxy.IPHash,
		proxy.Target{Addr: "a:1"}, proxy.Target{Addr: "b:1", Weight: 2}, proxy.Target{Addr: "c:1"}, proxy.Target{Addr: "d:1", Down: true})
	for from, want := range map[string]string{
		"192.0.2.7": "a", "192.0.3.7": "b", "10.0.0.1": "a", "10.1.2.3": "a", "10.1.2.200": "a", "172.16.5.9": "b",
		"203.0.113.50": "b", "198.51.100.1": "b", "8.8.8.8": "c", "127.0.0.1": "a",
		"[::1]": "a", "[2001:db8::1]": "a", "[2001:db8::2]": "b", "[fe80::1]": "c", "[::ffff:192.0.2.7]": "b",
	} {
		if got := a.ask(p, 3, from+":1234"); got != want+" "+want+" "+want {
			t.Errorf("%s: asked %q, want %q", from, got, want)
		}
	}
}

// A client whose target fails is sent elsewhere, and comes back.
func TestIPHashFailover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, a := overTargets(t, proxy.IPHash, proxy.Target{Addr: "a:1"}, proxy.Target{Addr: "b:1"}, proxy.Target{Addr: "c:1"})
		home := a.ask(p, 1, client)
		a.broken[home] = true
		if got := a.ask(p, 1, client); got != home {
			t.Fatalf("asked %q, want %q", got, home)
		}
		other := a.ask(p, 1, client)
		if other == home || a.ask(p, 3, client) != other+" "+other+" "+other {
			t.Errorf("asked %q after %q", a.order, home)
		}
		time.Sleep(10*time.Second + time.Nanosecond)
		a.broken[home] = false
		if got := a.ask(p, 2, client); got != home+" "+home {
			t.Errorf("asked %q, want %q", got, home)
		}
	})
}

func TestHTTPSTarget(t *testing.T) {
	leaktest.Check(t)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.TLS.ServerName+" "+r.Proto)
	}))
	s.Config.ErrorLog = wiretest.Quiet()
	s.StartTLS()
	defer s.Close()
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	for name, test := range map[string]struct {
		config *tls.Config
		status int
		body   string
	}{
		"trusted":   {&tls.Config{RootCAs: roots, ServerName: "example.com"}, 200, "example.com HTTP/1.1"},
		"untrusted": {nil, 502, "Bad Gateway\n"},
	} {
		t.Run(name, func(t *testing.T) {
			u := upstream(t, proxy.UpstreamOptions{Scheme: "https", TLSConfig: test.config}, s.Listener.Addr().String())
			client := wiretest.Dial(t, wiretest.Serve(t, newProxy(t, proxy.Options{Upstream: u})))
			client.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
			if resp, body := client.Answer("GET"); resp.StatusCode != test.status || body != test.body {
				t.Errorf("answer %s %q", resp.Status, body)
			}
		})
	}
}
