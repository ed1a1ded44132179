package upstream_test

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/upstream"
)

func TestParseTarget(t *testing.T) {
	for in, want := range map[string]upstream.Target{
		"https://host:8443/base":      {Addr: "host:8443", Scheme: "https", Path: "/base"},
		"https://host":                {Addr: "host:443", Scheme: "https"},
		"http://host/":                {Addr: "host:80", Scheme: "http"},
		"HTTP://[2001:db8::1]/a%2Fb/": {Addr: "[2001:db8::1]:80", Scheme: "http", Path: "/a%2Fb"},
		"http://host/ü x":             {Addr: "host:80", Scheme: "http", Path: "/%C3%BC%20x"},
		"host:1":                      {Addr: "host:1"},
		"unix:/run/app.sock":          {Addr: "unix:/run/app.sock"},
	} {
		got, err := upstream.ParseTarget(in)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v, %v; want %+v", in, got, err, want)
			continue
		}
		if g, err := upstream.New(upstream.Options{}, got); err != nil {
			t.Errorf("%q: %v", in, err)
		} else {
			g.Close()
		}
	}
	for in, want := range map[string]string{
		"host":                        "missing port",
		"host:1/base":                 `write "host:1", with Target.Path "/base"`,
		"ws://host":                   `scheme "ws": write http:// or https://`,
		"http://user:secret@host":     "set Authorization in proxy.Options.Rewrite",
		"http://host/?q":              "set Out.URL.RawQuery in proxy.Options.Rewrite",
		"http://host?":                "a query in the URL",
		"http://host/#f":              "a fragment",
		"http:///base":                "write http://host:port/path",
		"http://host:0":               "port",
		"http://host//base":           "does not begin with one slash",
		"http://ho st":                "invalid character",
		"http://user:secret@host:x/":  "invalid port",
		"http://unix-2f.invalid/base": "the name stands for a unix socket",
		"user:secret@host:1":          "an address has no user",
		"user:secret@host:1/base":     "an address has no user",
		"user:sec/ret@host:1":         "an address has no user",
		"secret@host:1":               "an address has no user",
	} {
		_, err := upstream.ParseTarget(in)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v, want %q", in, err, want)
		}
	}
	for _, addr := range []string{"http://user:secret@host:1", "user:secret@host:1", "secret@host:1"} {
		if _, err := upstream.New(upstream.Options{}, upstream.Target{Addr: addr}); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", addr, err)
		}
	}
}

// A target that can't be reached as it says is refused, not each request.
func TestTargetsWay(t *testing.T) {
	config := &tls.Config{}
	for want, test := range map[string]struct {
		o       upstream.Options
		targets []upstream.Target
	}{
		`scheme "ftp" is neither http nor https`:   {upstream.Options{}, []upstream.Target{{Addr: "a:1", Scheme: "ftp"}}},
		"HTTP2 needs the scheme https":             {upstream.Options{Protocol: upstream.HTTP2, Scheme: "https"}, []upstream.Target{{Addr: "a:1", Scheme: "http"}}},
		"H2C needs the scheme http":                {upstream.Options{Protocol: upstream.H2C}, []upstream.Target{{Addr: "a:1", Scheme: "https"}}},
		"ServerName and TLSConfig need the scheme": {upstream.Options{}, []upstream.Target{{Addr: "a:1", ServerName: "a"}}},
		"TLSConfig need the scheme https":          {upstream.Options{}, []upstream.Target{{Addr: "a:1", TLSConfig: config}}},
		"can't have gRPC checks":                   {upstream.Options{Check: &upstream.Check{GRPC: true}}, []upstream.Target{{Addr: "a:1", Scheme: "https"}}},
		"needs ServerName":                         {upstream.Options{}, []upstream.Target{{Addr: "unix:/a", Scheme: "https"}}},
		"does not begin with one slash":            {upstream.Options{}, []upstream.Target{{Addr: "a:1", Path: "base"}}},
		"has a query or a fragment":                {upstream.Options{}, []upstream.Target{{Addr: "a:1", Path: "/base?q"}}},
		"invalid URL escape":                       {upstream.Options{}, []upstream.Target{{Addr: "a:1", Path: "/%zz"}}},
		`path "/a b"`:                              {upstream.Options{}, []upstream.Target{{Addr: "a:1", Path: "/a b"}}},
		"given twice":                              {upstream.Options{}, []upstream.Target{{Addr: "a:1"}, {Addr: "a:1", Scheme: "https"}}},
	} {
		if _, err := upstream.New(test.o, test.targets...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	newGroup(t, upstream.Options{}, upstream.Target{Addr: "a:1", Path: "/a"}, upstream.Target{Addr: "a:1", Path: "/b/"},
		upstream.Target{Addr: "unix:/a", Scheme: "https", ServerName: "a"})
}

// A name that no certificate can be verified for is refused, not each handshake.
func TestServerNames(t *testing.T) {
	of := func(name string) error {
		_, err := upstream.New(upstream.Options{Scheme: "https"}, upstream.Target{Addr: "192.0.2.1:443", ServerName: name})
		return err
	}
	long := strings.Repeat("a.", 126) + "b." // 254 bytes
	for _, name := range []string{"a", "a.example", "a.example.", "A_1-b.example", "192.0.2.1", "2001:db8::1", "xn--bcher-kva.example", long, strings.Repeat("a", 63)} {
		if err := of(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{"a.example:443", "https://a.example", "a b", "a..b", ".a", ".", "*.a.example", "[2001:db8::1]", "a\x00", "a\n", "bücher.example", "\xff",
		"a" + long, strings.Repeat("a", 64)} {
		if err := of(name); err == nil || !strings.Contains(err.Error(), `target "192.0.2.1:443": ServerName`) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// What is the program's own is where it needs it.
func TestTargetsOwnFields(t *testing.T) {
	g := newGroup(t, upstream.Options{Scheme: "https"}, upstream.Target{Addr: "a:1", Name: "one", Zone: "z", Labels: map[string]string{"k": "v"}, Value: 7})
	lease, err := g.Pick(t.Context(), request())
	if err != nil {
		t.Fatal(err)
	}
	defer lease.Done(upstream.Outcome{})
	for s := range g.Targets() {
		for _, got := range []upstream.Target{lease.Target(), s.Target} {
			if got.Name != "one" || got.Zone != "z" || got.Labels["k"] != "v" || got.Value != 7 || got.Scheme != "https" {
				t.Errorf("%+v", got)
			}
		}
	}
}

// Checks reach each target as requests do.
func TestChecksOfSeveralKinds(t *testing.T) {
	leaktest.Check(t)
	got := make(chan string, 100)
	handler := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		sni := "none"
		if r.TLS != nil {
			sni = r.TLS.ServerName
		}
		got <- sni + r.URL.Path
	})
	plain, secure := httptest.NewServer(handler), httptest.NewTLSServer(handler)
	defer plain.Close()
	defer secure.Close()
	roots := secure.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	g := newGroup(t, upstream.Options{Check: &upstream.Check{Path: "/health", Interval: time.Hour, Jitter: -1}},
		upstream.Target{Addr: plain.Listener.Addr().String(), Path: "/base"},
		upstream.Target{Addr: secure.Listener.Addr().String(), Scheme: "https", ServerName: "example.com", TLSConfig: &tls.Config{RootCAs: roots}})
	seen := map[string]bool{wiretest.Await(t, got, "a check"): true, wiretest.Await(t, got, "a check"): true}
	if !seen["none/health"] || !seen["example.com/health"] {
		t.Errorf("checked by %v", seen)
	}
	_ = g.Close()
}
