package upstream_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/culvert-go/culvert/internal/http1"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/upstream"
)

// exchange sends one GET over the group's transport and returns the response body, or the error's text.
func exchange(t *testing.T, g *upstream.Group) string {
	t.Helper()
	l, err := g.Pick(t.Context(), request())
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(l.Context(t.Context()), "GET", g.Scheme()+"://"+l.Host()+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := g.Transport().RoundTrip(r)
	l.Done(upstream.Outcome{Err: err})
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// overPool sends r as package proxy does, over a connection of the transport's pool, which it closes.
func overPool(transport *upstream.Transport, r *http.Request) error {
	call := http1.Call{Request: r}
	if err := call.Prepare(); err != nil {
		return err
	}
	defer call.Close()
	_, err := http1.PoolOf(transport).Do(&call)
	return err
}

// serve starts a test server that responds with the protocol of the request, and over TLS with the
// server name and the number of the client's certificates.
func serve(t *testing.T, start func(*httptest.Server)) *httptest.Server {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Proto)
		if r.TLS != nil {
			fmt.Fprintf(w, " %s %d", r.TLS.ServerName, len(r.TLS.PeerCertificates))
		}
	}))
	s.Config.ErrorLog = wiretest.Quiet()
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetHTTP1(true)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	start(s)
	t.Cleanup(s.Close)
	return s
}

func TestUnixSocket(t *testing.T) {
	leaktest.Check(t)
	path := filepath.Join(t.TempDir(), "app.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	serve(t, func(s *httptest.Server) {
		s.Listener.Close()
		s.Listener = l
		s.Start()
	})
	g := newGroup(t, upstream.Options{}, upstream.Target{Addr: "unix:" + path})
	if got := exchange(t, g); got != "HTTP/1.1" {
		t.Errorf("got %q", got)
	}
	for s := range g.Targets() {
		if s.Target.Addr != "unix:"+path {
			t.Errorf("address %q", s.Target.Addr)
		}
	}
	missing := newGroup(t, upstream.Options{}, upstream.Target{Addr: "unix:/nowhere/app.sock"})
	if got := exchange(t, missing); !strings.Contains(got, "dial unix /nowhere/app.sock") {
		t.Errorf("error %q", got)
	}
}

// A transport of NewTransport reaches the same targets as the group's own, with its own options.
func TestTransport(t *testing.T) {
	leaktest.Check(t)
	s := serve(t, (*httptest.Server).Start)
	from := make(chan string, 1)
	s.Config.Handler = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { from <- r.RemoteAddr })
	transport, err := upstream.NewTransport(upstream.Options{Dialer: &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 7)}}})
	if err != nil {
		t.Fatal(err)
	}
	defer transport.CloseIdleConnections()
	r, _ := http.NewRequest("GET", s.URL, nil)
	resp, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if got := <-from; !strings.HasPrefix(got, "127.0.0.7:") {
		t.Errorf("dialled from %s", got)
	}
	if _, err := upstream.NewTransport(upstream.Options{MaxIdleConns: -1}); err == nil {
		t.Error("a negative number was accepted")
	}
}

// A second connection over TLS resumes the session of the first one, with RoundTrip and over the pool.
func TestSessionsAreResumed(t *testing.T) {
	leaktest.Check(t)
	resumed := make(chan bool, 1)
	s := serve(t, (*httptest.Server).StartTLS)
	s.Config.Handler = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { resumed <- r.TLS.DidResume })
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	for name, send := range map[string]func(*upstream.Transport) error{
		"RoundTrip": func(transport *upstream.Transport) error {
			r, _ := http.NewRequest("GET", s.URL, nil)
			r.Close = true
			resp, err := transport.RoundTrip(r)
			if err == nil {
				resp.Body.Close()
			}
			return err
		},
		"the pool": func(transport *upstream.Transport) error {
			r, _ := http.NewRequest("GET", s.URL, nil)
			return overPool(transport, r)
		},
	} {
		t.Run(name, func(t *testing.T) {
			transport, err := upstream.NewTransport(upstream.Options{Scheme: "https", TLSConfig: &tls.Config{RootCAs: roots, ServerName: "example.com"}})
			if err != nil {
				t.Fatal(err)
			}
			defer transport.CloseIdleConnections()
			for _, want := range []bool{false, true} {
				if err := send(transport); err != nil {
					t.Fatal(err)
				}
				if got := <-resumed; got != want {
					t.Errorf("resumed %v, want %v", got, want)
				}
			}
		})
	}
}

func TestProtocols(t *testing.T) {
	leaktest.Check(t)
	clear := serve(t, (*httptest.Server).Start)
	secure := serve(t, func(s *httptest.Server) {
		s.EnableHTTP2 = true
		s.Config.Protocols.SetHTTP2(true)
		s.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
		s.StartTLS()
	})
	roots := x509.NewCertPool()
	roots.AddCert(secure.Certificate())
	verified := &tls.Config{RootCAs: roots, ServerName: "example.com", Certificates: secure.TLS.Certificates}
	for name, test := range map[string]struct {
		o    upstream.Options
		addr string
		want string
	}{
		"HTTP/1.1":          {upstream.Options{}, clear.Listener.Addr().String(), "HTTP/1.1"},
		"h2c":               {upstream.Options{Protocol: upstream.H2C}, clear.Listener.Addr().String(), "HTTP/2.0"},
		"TLS":               {upstream.Options{Scheme: "https", TLSConfig: verified}, secure.Listener.Addr().String(), "HTTP/1.1 example.com 1"},
		"h2":                {upstream.Options{Scheme: "https", TLSConfig: verified, Protocol: upstream.HTTP2}, secure.Listener.Addr().String(), "HTTP/2.0 example.com 1"},
		"unknown authority": {upstream.Options{Scheme: "https"}, secure.Listener.Addr().String(), "tls: failed to verify certificate: x509: certificate signed by unknown authority"},
		"another name":      {upstream.Options{Scheme: "https", TLSConfig: &tls.Config{RootCAs: roots, ServerName: "app.test"}}, secure.Listener.Addr().String(), "tls: failed to verify certificate: x509: certificate is valid for example.com, *.example.com, not app.test"},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGroup(t, test.o, upstream.Target{Addr: test.addr})
			if got := exchange(t, g); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// requestsOf makes s count the requests of each connection; the function it returns returns the counts.
func requestsOf(s *httptest.Server) func() []int {
	var mu sync.Mutex
	var counts []*int
	type key struct{}
	s.Config.ConnContext = func(ctx context.Context, _ net.Conn) context.Context {
		mu.Lock()
		defer mu.Unlock()
		counts = append(counts, new(int))
		return context.WithValue(ctx, key{}, counts[len(counts)-1])
	}
	inner := s.Config.Handler
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		*r.Context().Value(key{}).(*int)++
		mu.Unlock()
		inner.ServeHTTP(w, r)
	})
	return func() (list []int) {
		mu.Lock()
		defer mu.Unlock()
		for _, n := range counts {
			list = append(list, *n)
		}
		return list
	}
}

// A connection ends with its last request, or with the first one at its maximum
// age.
func TestConnLimits(t *testing.T) {
	leaktest.Check(t)
	for name, test := range map[string]struct {
		o     upstream.Options
		most  int // requests of a connection
		conns int // at least, of 10 requests
	}{
		"none":         {upstream.Options{}, 10, 1},
		"requests":     {upstream.Options{MaxConnRequests: 3}, 3, 4},
		"age":          {upstream.Options{MaxConnAge: time.Nanosecond}, 1, 10},
		"age, far":     {upstream.Options{MaxConnAge: time.Hour}, 10, 1},
		"h2c requests": {upstream.Options{MaxConnRequests: 3, Protocol: upstream.H2C}, 3, 4},
	} {
		t.Run(name, func(t *testing.T) {
			var counts func() []int
			s := serve(t, func(s *httptest.Server) {
				counts = requestsOf(s)
				s.Start()
			})
			g := newGroup(t, test.o, upstream.Target{Addr: s.Listener.Addr().String()})
			for range 10 {
				if got := exchange(t, g); !strings.HasPrefix(got, "HTTP/") {
					t.Fatal(got)
				}
			}
			// Over H2C there may be one connection more: http.Transport hands a new connection to the
			// request it was dialled for before it keeps it (dialConnFor), so the next request may be
			// too early for it. No connection has more requests than allowed.
			list := counts()
			exact := test.o.Protocol != upstream.H2C
			if len(list) < test.conns || exact && len(list) > test.conns || slices.Max(list) > test.most {
				t.Errorf("connections with %v requests, want %d of at most %d", list, test.conns, test.most)
			}
		})
	}
}

// Set, Pick and Done are safe for concurrent use.
func TestConcurrentUse(t *testing.T) {
	leaktest.Check(t)
	for _, b := range []upstream.Balance{upstream.RoundRobin(), upstream.LeastConn(), upstream.RandomTwo(), byKey(), upstream.Sticky(upstream.StickyOptions{})} {
		g, err := upstream.New(upstream.Options{Balance: b, Queue: 8}, addrs("a b c")...)
		if err != nil {
			t.Fatal(err)
		}
		var users sync.WaitGroup
		for i := range 6 {
			users.Go(func() {
				for range 200 {
					if i == 0 {
						_ = g.Set(addrs("b c d")...)
						_ = g.Set(upstream.Target{Addr: "a:1", MaxConns: 2}, upstream.Target{Addr: "e:1", Weight: 3})
						continue
					}
					if l, err := g.Pick(t.Context(), request()); err == nil {
						l.Cookie(request())
						l.Done(upstream.Outcome{Status: 200})
					}
				}
			})
		}
		users.Wait()
		if n := g.InFlight(); n != 0 {
			t.Errorf("%d in flight", n)
		}
		g.Close()
	}
}

// The connection to an HTTP/2 target is closed when it does not respond to a PING
// (golang/go#36026).
func TestDeadHTTP2Peer(t *testing.T) {
	leaktest.Check(t)
	target := wiretest.Target(t, func(p *wiretest.Peer) {
		p.Receive("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
		p.Send("\x00\x00\x00\x04\x00\x00\x00\x00\x00") // SETTINGS, and nothing after it
		p.Ended()
	})
	g := newGroup(t, upstream.Options{Protocol: upstream.H2C, PingInterval: 50 * time.Millisecond, HeaderTimeout: -1}, upstream.Target{Addr: target})
	if got := exchange(t, g); !strings.Contains(got, "client connection lost") {
		t.Errorf("got %q", got)
	}
}
