package upstream_test

import (
	"encoding/hex"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/culvert-go/culvert/internal/http1"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/upstream"
)

// socket starts a server on a unix socket, whose path is short enough for a DNS name, and counts its
// requests.
func socket(t *testing.T) (path string, requests *atomic.Int32) {
	t.Helper()
	dir, err := os.MkdirTemp("", "c")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path = filepath.Join(dir, "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	requests = new(atomic.Int32)
	s := serve(t, func(s *httptest.Server) {
		s.Listener.Close()
		s.Listener = l
		s.Start()
	})
	inner := s.Config.Handler
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		inner.ServeHTTP(w, r)
	})
	return path, requests
}

// names returns names that have meant the socket in a URL, or might.
func names(path string) []string {
	name := "unix-" + hex.EncodeToString([]byte(path)) + ".invalid"
	return []string{name, name + ":80", name + ":443", name + ".:80", strings.ToUpper(name) + ":80", "unix:" + path, "unix:" + path + ":80",
		"[" + name + "]", "[" + name + "]:80",
		// http.Transport maps these to the name (UTS 46).
		"\uff55\uff4e\uff49\uff58" + name[4:], "u\u00adnix" + name[4:] + ":80", strings.Replace(name, ".", "\u3002", 1), name[:len(name)-1] + "\uff24"}
}

// No name alone leads to a unix socket, not even over a connection that was kept from a lease.
func TestNoNameReachesASocket(t *testing.T) {
	leaktest.Check(t)
	path, requests := socket(t)
	for protocol, version := range map[upstream.Protocol]string{upstream.HTTP1: "HTTP/1.1", upstream.H2C: "HTTP/2.0"} {
		g := newGroup(t, upstream.Options{Protocol: protocol}, upstream.Target{Addr: "unix:" + path})
		if got := exchange(t, g); got != version {
			t.Fatalf("got %q with a lease", got)
		}
		leased := requests.Load()
		for _, name := range names(path) {
			r, err := http.NewRequestWithContext(t.Context(), "GET", "http://a/", nil)
			if err != nil {
				t.Fatal(err)
			}
			r.URL.Host = name
			if resp, err := g.Transport().RoundTrip(r); err == nil {
				resp.Body.Close()
				t.Errorf("%s: status %d", name, resp.StatusCode)
			}
			if conn, err := g.Dial(t.Context(), "tcp", name); err == nil {
				conn.Close()
				t.Errorf("%s was dialled", name)
			}
			if transport := g.Transport().(*upstream.Transport); http1.PoolOf(transport) != nil {
				if err := overPool(transport, r); err == nil {
					t.Errorf("%s was dialled for the pool", name)
				}
			}
		}
		if n := requests.Load(); n != leased {
			t.Errorf("the socket got %d requests, want %d", n, leased)
		}
	}
}

// With the context of a lease, only the lease's own name leads to its socket.
func TestContextOfAnotherLease(t *testing.T) {
	path, requests := socket(t)
	other, _ := socket(t)
	g := newGroup(t, upstream.Options{}, upstream.Target{Addr: "unix:" + path})
	l, err := g.Pick(t.Context(), request())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Done(upstream.Outcome{Status: 200})
	for _, name := range append(names(other), "127.0.0.1:1") {
		if conn, err := g.Dial(l.Context(t.Context()), "tcp", name); err == nil {
			conn.Close()
			t.Errorf("%s was dialled", name)
		}
	}
	if n := requests.Load(); n != 0 {
		t.Errorf("%d requests", n)
	}
}

// A socket's name is refused as the address of a target.
func TestSocketNamesAreNoAddresses(t *testing.T) {
	path, _ := socket(t)
	for _, name := range names(path)[1:5] {
		if g, err := upstream.New(upstream.Options{}, upstream.Target{Addr: name}); err == nil {
			g.Close()
			t.Errorf("%s was accepted", name)
		}
	}
}

// A socket's name is refused in SRV records, too.
func TestSRVNamesASocket(t *testing.T) {
	warmResolver(t)
	path, requests := socket(t)
	synctest.Test(t, func(t *testing.T) {
		n := &nameserver{ttl: 5, srv: []dnsmessage.SRVResource{{Port: 80, Target: dnsmessage.MustNewName(names(path)[0] + ".")}}}
		refused := make(chan error, 8)
		source, err := upstream.SRV("_http._tcp.app.example.", upstream.DNSOptions{Resolver: n.resolver(), OnError: func(err error) { refused <- err }})
		if err != nil {
			t.Fatal(err)
		}
		g := newGroup(t, upstream.Options{Source: source, QueueTimeout: time.Second})
		if _, err := g.Pick(t.Context(), request()); err == nil {
			t.Error("a target was picked")
		}
		if err := <-refused; !strings.Contains(err.Error(), "stands for a unix socket") {
			t.Errorf("error %v", err)
		}
	})
	if n := requests.Load(); n != 0 {
		t.Errorf("%d requests", n)
	}
}

// Checks work over unix sockets, with a request and by a connection alone.
func TestChecksOfASocket(t *testing.T) {
	leaktest.Check(t)
	path, _ := socket(t)
	for name, check := range map[string]upstream.Check{"a request": {Path: "/"}, "a connection": {}} {
		t.Run(name, func(t *testing.T) {
			changes := make(chan bool, 8)
			check.Interval, check.Rise, check.Fall = time.Millisecond, 1, 1
			check.OnChange = func(_ string, healthy bool, err error) { changes <- healthy }
			g := newGroup(t, upstream.Options{Check: &check}, upstream.Target{Addr: "unix:" + path}, upstream.Target{Addr: "unix:" + path + "-missing"})
			if <-changes {
				t.Error("a target became healthy that was never unhealthy")
			}
			for s := range g.Targets() {
				if missing := strings.HasSuffix(s.Target.Addr, "-missing"); s.Healthy == missing {
					t.Errorf("%s is healthy: %v", s.Target.Addr, s.Healthy)
				}
			}
		})
	}
}
