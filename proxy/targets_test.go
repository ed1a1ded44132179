package proxy_test

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// certified returns a certificate for a name, and the roots by which it is verified.
func certified(t *testing.T, name string) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{name}, NotAfter: time.Now().Add(100 * time.Hour),
		IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(cert)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, roots
}

// namedTarget is a target that responds with what was requested, and by which name; "" is one without TLS.
type namedTarget struct {
	*httptest.Server
	roots *x509.CertPool
	conns atomic.Int32
}

func newNamedTarget(t *testing.T, name string, http2 bool) *namedTarget {
	t.Helper()
	n := &namedTarget{}
	n.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sni := ""
		if r.TLS != nil {
			sni = r.TLS.ServerName
		}
		line := fmt.Sprint(sni, " ", r.ProtoMajor, " ", r.RequestURI)
		if r.Header.Get("Upgrade") == "" {
			fmt.Fprint(w, line)
			return
		}
		w.Header().Set("Connection", "Upgrade")
		w.Header().Set("Upgrade", "websocket")
		w.Header().Set("Sec-WebSocket-Accept", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
		w.WriteHeader(http.StatusSwitchingProtocols)
		if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
			_, _ = io.WriteString(c, line)
			c.Close()
		}
	}))
	n.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			n.conns.Add(1)
		}
	}
	if name == "" {
		n.Start()
	} else {
		cert, roots := certified(t, name)
		n.roots, n.TLS, n.EnableHTTP2 = roots, &tls.Config{Certificates: []tls.Certificate{cert}}, http2
		n.StartTLS()
	}
	t.Cleanup(n.Close)
	return n
}

func (n *namedTarget) addr() string { return n.Listener.Addr().String() }

// A group's targets may have schemes, server names, certificates and base paths of their own.
func TestTargetsOfSeveralKinds(t *testing.T) { onPaths(t, testTargetsOfSeveralKinds) }
func testTargetsOfSeveralKinds(t *testing.T, via path) {
	for _, protocol := range []upstream.Protocol{upstream.HTTP1, upstream.HTTP2} {
		t.Run(fmt.Sprint(protocol), func(t *testing.T) {
			leaktest.Check(t)
			h2 := protocol == upstream.HTTP2
			plain, one, two := newNamedTarget(t, "", false), newNamedTarget(t, "one.test", h2), newNamedTarget(t, "two.test", h2)
			major := map[bool]string{false: "1", true: "2"}[h2]
			targets := []upstream.Target{
				{Addr: one.addr(), Scheme: "https", TLSConfig: &tls.Config{RootCAs: one.roots, ServerName: "one.test"}, Path: "/base%2Fone/"},
				{Addr: two.addr(), Scheme: "https", TLSConfig: &tls.Config{RootCAs: two.roots}, ServerName: "two.test"},
			}
			want := []string{"one.test " + major + " /base%2Fone/x%2Fy//z?q=1&q", "two.test " + major + " /x%2Fy//z?q=1&q"}
			all := []*namedTarget{one, two}
			if !h2 {
				targets = append(targets, upstream.Target{Addr: plain.addr(), Path: "/plain"})
				want, all = append(want, " 1 /plain/x%2Fy//z?q=1&q"), append(all, plain)
			}
			o := upstream.Options{Protocol: protocol, Scheme: map[bool]string{false: "http", true: "https"}[h2]}
			group, err := upstream.New(o, targets...)
			if err != nil {
				t.Fatal(err)
			}
			defer group.Close()
			p := newProxy(t, via, proxy.Options{Upstream: group})
			for range 2 {
				for _, want := range want {
					w := httptest.NewRecorder()
					p.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/x%2Fy//z?q=1&q", nil))
					if w.Code != 200 || w.Body.String() != want {
						t.Errorf("%d %q, want %q", w.Code, w.Body, want)
					}
				}
			}
			for i, n := range all {
				if n := n.conns.Load(); n != 1 {
					t.Errorf("target %d has got %d connections for two requests", i, n)
				}
			}
			front := wiretest.Serve(t, p)
			for _, want := range want {
				c := wiretest.Dial(t, front)
				c.Send("GET /x%2Fy//z?q=1&q HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
				c.Header()
				if got, want := c.Rest(), strings.Replace(want, " 2 ", " 1 ", 1); got != want {
					t.Errorf("through the tunnel came %q, want %q", got, want)
				}
			}
		})
	}
}

// A connection that was made by another TLS configuration is not used, though it leads to the same address.
func TestAnotherServerName(t *testing.T) { onPaths(t, testAnotherServerName) }
func testAnotherServerName(t *testing.T, via path) {
	leaktest.Check(t)
	n := newNamedTarget(t, "one.test", false)
	config := &tls.Config{InsecureSkipVerify: true}
	target := upstream.Target{Addr: n.addr(), Scheme: "https", TLSConfig: config}
	group, err := upstream.New(upstream.Options{}, target)
	if err != nil {
		t.Fatal(err)
	}
	defer group.Close()
	p := newProxy(t, via, proxy.Options{Upstream: group})
	for i, name := range []string{"one.test", "one.test", "two.test", "two.test"} {
		target.ServerName = name
		if err := group.Set(target); err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		p.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/", nil))
		if want := name + " 1 /"; w.Body.String() != want {
			t.Errorf("%q, want %q", w.Body, want)
		}
		if want := int32(i/2 + 1); n.conns.Load() != want {
			t.Errorf("%d connections behind request %d, want %d", n.conns.Load(), i, want)
		}
	}
}

// Each attempt has the base path of its own target, and a hook's path is behind it.
func TestBasePathOfEachAttempt(t *testing.T) { onPaths(t, testBasePathOfEachAttempt) }
func testBasePathOfEachAttempt(t *testing.T, via path) {
	leaktest.Check(t)
	n := newNamedTarget(t, "", false)
	broken := wiretest.Unused(t)
	group, err := upstream.New(upstream.Options{Balance: upstream.First()},
		upstream.Target{Addr: broken, Path: "/broken"}, upstream.Target{Addr: n.addr(), Path: "/b"})
	if err != nil {
		t.Fatal(err)
	}
	defer group.Close()
	for name, test := range map[string]struct {
		rewrite func(*proxy.Outbound)
		want    string
	}{
		"as it came":  {func(*proxy.Outbound) {}, "/b/x%41"},
		"stripped":    {func(o *proxy.Outbound) { o.StripPrefix("/x%41") }, "/b/"},
		"added":       {func(o *proxy.Outbound) { o.AddPrefix("/add") }, "/b/add/x%41"},
		"opaque":      {func(o *proxy.Outbound) { o.Out.URL.Opaque = "/o%2e" }, "/b/o%2e"},
		"two slashes": {func(o *proxy.Outbound) { o.Out.URL.Path, o.Out.URL.RawPath = "//x", "" }, "/b//x"},
	} {
		p := newProxy(t, via, proxy.Options{Upstream: group, Rewrite: test.rewrite, Retry: proxy.Retry{Errors: true}})
		w := httptest.NewRecorder()
		p.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/x%41", nil))
		if want := " 1 " + test.want; w.Body.String() != want {
			t.Errorf("%s: %d %q, want %q", name, w.Code, w.Body, want)
		}
	}
}

// The second target of a hedged request has its own base path and certificate.
func TestHedgeToAnotherKind(t *testing.T) { onPaths(t, testHedgeToAnotherKind) }
func testHedgeToAnotherKind(t *testing.T, via path) {
	leaktest.Check(t)
	n := newNamedTarget(t, "one.test", false)
	silent := wiretest.Target(t, func(p *wiretest.Peer) {
		_, _ = io.Copy(io.Discard, p.R) // until the gateway closes, which may be before it has sent the header
	})
	group, err := upstream.New(upstream.Options{Balance: upstream.First()}, upstream.Target{Addr: silent, Path: "/a"},
		upstream.Target{Addr: n.addr(), Scheme: "https", Path: "/b", TLSConfig: &tls.Config{RootCAs: n.roots}, ServerName: "one.test"})
	if err != nil {
		t.Fatal(err)
	}
	defer group.Close()
	p := newProxy(t, via, proxy.Options{Upstream: group, Retry: proxy.Retry{Hedge: time.Millisecond}})
	w := httptest.NewRecorder()
	p.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/x", nil))
	if w.Body.String() != "one.test 1 /b/x" {
		t.Errorf("%d %q", w.Code, w.Body)
	}
}

// Requests name targets by URLs, of which one address may have several.
func TestURLsOfRequests(t *testing.T) { onPaths(t, testURLsOfRequests) }
func testURLsOfRequests(t *testing.T, via path) {
	leaktest.Check(t)
	secure, plain := newNamedTarget(t, "one.test", false), newNamedTarget(t, "", false)
	d, err := upstream.NewDynamic(upstream.DynamicOptions{
		Group:  upstream.Options{TLSConfig: &tls.Config{RootCAs: secure.roots, ServerName: "one.test"}},
		Choose: func(r *http.Request) (upstream.Target, error) { return upstream.ParseTarget(r.Header.Get("X-To")) },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	o := proxy.Options{Upstream: d}
	if via == httpTransport {
		transport, err := upstream.NewTransport(upstream.Options{TLSConfig: &tls.Config{RootCAs: secure.roots, ServerName: "one.test"}})
		if err != nil {
			t.Fatal(err)
		}
		defer transport.CloseIdleConnections()
		o.Transport = standard{transport}
	}
	p := newProxy(t, via, o)
	for to, want := range map[string]string{
		plain.URL: " 1 /x", plain.URL + "/a": " 1 /a/x", plain.URL + "/b/": " 1 /b/x", secure.URL + "/s": "one.test 1 /s/x",
	} {
		r, w := httptest.NewRequestWithContext(t.Context(), "GET", "/x", nil), httptest.NewRecorder()
		r.Header.Set("X-To", to)
		p.ServeHTTP(w, r)
		if w.Code != 200 || w.Body.String() != want {
			t.Errorf("%s: %d %q, want %q", to, w.Code, w.Body, want)
		}
	}
}

// The attempt behind one at a target with a TLS configuration of its own is made by its own target's, though the address is the same.
func TestTLSOfEachAttempt(t *testing.T) { onPaths(t, testTLSOfEachAttempt) }
func testTLSOfEachAttempt(t *testing.T, via path) {
	leaktest.Check(t)
	n := newNamedTarget(t, "one.test", false)
	n.TLS.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		if hello.ServerName == "refused.test" {
			return nil, errors.New("no such name")
		}
		return nil, nil
	}
	for _, second := range []string{"", "own.test"} {
		next := "refused.test"
		o := upstream.Options{Scheme: "https", TLSConfig: &tls.Config{InsecureSkipVerify: true, ServerName: "group.test"}}
		d, err := upstream.NewDynamic(upstream.DynamicOptions{Group: o, Choose: func(*http.Request) (upstream.Target, error) {
			name := next
			next = second
			return upstream.Target{Addr: n.addr(), ServerName: name}, nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		po := proxy.Options{Upstream: d, Retry: proxy.Retry{Wait: time.Minute}} // an address that was tried is not, without a wait
		if via == httpTransport {
			transport, err := upstream.NewTransport(o)
			if err != nil {
				t.Fatal(err)
			}
			defer transport.CloseIdleConnections()
			po.Transport = standard{transport}
		}
		w := httptest.NewRecorder()
		newProxy(t, via, po).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/", nil))
		if want := cmp.Or(second, "group.test") + " 1 /"; w.Body.String() != want {
			t.Errorf("%d %q, want %q", w.Code, w.Body, want)
		}
	}
}

// A Dynamic's targets at one address that differ in their TLSConfig alone are two: neither has the other's client certificate.
func TestClientCertificateOfEachTenant(t *testing.T) { onPaths(t, testClientCertificateOfEachTenant) }
func testClientCertificateOfEachTenant(t *testing.T, via path) {
	leaktest.Check(t)
	n := newNamedTarget(t, "one.test", false)
	var tenant atomic.Value
	n.TLS.ClientAuth = tls.RequireAnyClientCert
	n.TLS.VerifyPeerCertificate = func(certs [][]byte, _ [][]*x509.Certificate) error {
		cert, err := x509.ParseCertificate(certs[0])
		if err == nil {
			tenant.Store(cert.DNSNames[0])
		}
		return err
	}
	configs := map[string]*tls.Config{}
	for _, name := range []string{"a.test", "b.test"} {
		cert, _ := certified(t, name)
		configs[name] = &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{cert}}
	}
	o := upstream.Options{Scheme: "https"}
	d, err := upstream.NewDynamic(upstream.DynamicOptions{Group: o, Choose: func(r *http.Request) (upstream.Target, error) {
		return upstream.Target{Addr: n.addr(), TLSConfig: configs[r.Host]}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	po := proxy.Options{Upstream: d}
	if via == httpTransport {
		transport, err := upstream.NewTransport(o)
		if err != nil {
			t.Fatal(err)
		}
		defer transport.CloseIdleConnections()
		po.Transport = standard{transport}
	}
	p := newProxy(t, via, po)
	for _, name := range []string{"a.test", "b.test"} {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/", nil)
		r.Host = name
		p.ServeHTTP(w, r)
		if w.Code != 200 || tenant.Load() != name {
			t.Errorf("%d, the request of %s has the certificate of %v", w.Code, name, tenant.Load())
		}
	}
}
