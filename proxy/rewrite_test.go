package proxy_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// sentFor sends a request to a proxy behind the filters, and returns what the target
// was sent.
func sentFor(t *testing.T, via path, o proxy.Options, reach front, request string, around ...culvert.Filter) *http.Request {
	t.Helper()
	target, heads := recording(t, "HTTP/1.1 204 No Content\r\n\r\n")
	o.Upstream = groupAt(t, upstream.Options{}, target)
	c := reach(t, filters.NewChain(around...).Then(newProxy(t, via, o)))
	c.Send(request)
	c.Status(204)
	sent, err := http.ReadRequest(bufio.NewReader(strings.NewReader(wiretest.Await(t, heads, "request"))))
	if err != nil {
		t.Fatal(err)
	}
	return sent
}

// front serves a handler and connects a client to it.
type front func(*testing.T, http.Handler) *wiretest.Peer

func overTCP(t *testing.T, h http.Handler) *wiretest.Peer {
	return wiretest.Dial(t, wiretest.Serve(t, h))
}

func overTLS(t *testing.T, h http.Handler) *wiretest.Peer {
	s := wiretest.NewTLSServer(h)
	t.Cleanup(s.Close)
	conn, err := tls.Dial("tcp", s.Listener.Addr().String(), &tls.Config{RootCAs: s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs, ServerName: "example.com"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return wiretest.NewPeer(t, conn)
}

func overUnix(t *testing.T, h http.Handler) *wiretest.Peer {
	path := filepath.Join(t.TempDir(), "socket")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(h)
	s.Listener.Close()
	s.Listener = l
	wiretest.Start(s)
	t.Cleanup(s.Close)
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return wiretest.NewPeer(t, conn)
}

// trusting is a RealIP that trusts this machine.
func trusting(t *testing.T) culvert.Filter {
	f, err := filters.RealIP(filters.RealIPOptions{Trusted: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// What a client claims of itself never gets through; what a trusted proxy says
// does. Fields that the client names in Connection are written all the same
// (CVE-2021-32813, CVE-2024-45410, golang/go#50580).
func TestForwardedFields(t *testing.T) { onPaths(t, testForwardedFields) }
func testForwardedFields(t *testing.T, via path) {
	leaktest.Check(t)
	const claims = "Forwarded: for=made-up\r\nX-Real-IP: 203.0.113.9\r\nConnection: X-Forwarded-For, X-Forwarded-Proto, Forwarded\r\n"
	const spoofed = claims + "X-Forwarded-For: 203.0.113.9\r\nX-Forwarded-Host: made.up\r\nX-Forwarded-Proto: gopher\r\n"
	const others = "X-Forwarded-Port: 6666\r\nX-Forwarded-Prefix: /evil\r\nX-Original-URL: /admin\r\nX-Rewrite-URL: /admin\r\n"
	const underscored = "X_Forwarded_For: 203.0.113.9\r\nX_FORWARDED_PORT: 6666\r\nX-Original_URL: /admin\r\nX_Other: kept\r\n"
	const said = "X-Forwarded-For: 203.0.113.9, 203.0.113.5\r\nX-Forwarded-Host: shop.example\r\nX-Forwarded-Proto: https\r\n"
	untrusting := []culvert.Filter{}
	for _, test := range []struct {
		name, host, fields string
		reach              front
		around             []culvert.Filter
		want               map[string]string
	}{
		{"no proxy is trusted", "example.com", spoofed, overTCP, untrusting, map[string]string{
			"X-Forwarded-For": "127.0.0.1", "X-Forwarded-Host": "example.com", "X-Forwarded-Proto": "http",
			"Forwarded": `for=127.0.0.1;host="example.com";proto=http`, "X-Real-Ip": ""}},
		{"over TLS", "example.com", spoofed, overTLS, untrusting, map[string]string{
			"X-Forwarded-Proto": "https", "Forwarded": `for=127.0.0.1;host="example.com";proto=https`}},
		{"a unix socket", "a:80", spoofed, overUnix, untrusting, map[string]string{
			"X-Forwarded-For": "", "Forwarded": `for=unknown;host="a:80";proto=http`}},
		{"behind a trusted proxy", "edge", said, overTCP, []culvert.Filter{trusting(t)}, map[string]string{
			"X-Forwarded-For": "203.0.113.5, 127.0.0.1", "X-Forwarded-Host": "shop.example", "X-Forwarded-Proto": "https",
			"Forwarded": `for=203.0.113.5, for=127.0.0.1;host="shop.example";proto=https`}},
		{"port, prefix and URL", "edge", others + underscored, overTCP, untrusting, map[string]string{
			"X-Forwarded-Port": "", "X-Forwarded-Prefix": "", "X-Original-Url": "", "X-Rewrite-Url": "",
			"X_forwarded_for": "", "X_forwarded_port": "", "X-Original_url": "", "X_other": "kept"}},
		{"port, prefix and URL of a trusted proxy", "edge", others + underscored, overTCP, []culvert.Filter{trusting(t)}, map[string]string{
			"X-Forwarded-Port": "6666", "X-Forwarded-Prefix": "/evil", "X-Original-Url": "/admin", "X-Rewrite-Url": "/admin",
			"X_forwarded_for": "", "X_forwarded_port": "", "X-Original_url": "", "X_other": "kept"}},
		{"an IPv6 client", "edge", "X-Forwarded-For: 2001:db8::7\r\n", overTCP, []culvert.Filter{trusting(t)}, map[string]string{
			"X-Forwarded-For": "2001:db8::7, 127.0.0.1", "Forwarded": `for="[2001:db8::7]", for=127.0.0.1;host="edge";proto=http`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			sent := sentFor(t, via, proxy.Options{Rewrite: func(o *proxy.Outbound) {
				o.SetXForwarded()
				o.SetForwarded()
			}}, test.reach, "GET / HTTP/1.1\r\nHost: "+test.host+"\r\n"+test.fields+"\r\n", test.around...)
			for name, want := range test.want {
				if got := strings.Join(sent.Header[name], "|"); got != want {
					t.Errorf("%s: %q, want %q", name, got, want)
				}
			}
		})
	}
}

// A gateway that leaves the fields to the hop in front, or to the target, says so in its hook.
func TestKeepForwarded(t *testing.T) { onPaths(t, testKeepForwarded) }
func testKeepForwarded(t *testing.T, via path) {
	leaktest.Check(t)
	keep := proxy.Options{Rewrite: (*proxy.Outbound).KeepForwarded}
	sent := sentFor(t, via, keep, overTCP, "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: b\r\nX-Forwarded-Port: 1\r\nX_Forwarded_For: c\r\nX-A: d\r\nConnection: X-Real-IP\r\nX-Real-IP: e\r\n\r\n",
		filters.NewChain().Then)
	for name, want := range map[string]string{"X-Forwarded-For": "b", "X-Forwarded-Port": "1", "X_forwarded_for": "c", "X-A": "d", "X-Real-Ip": "", "X-Forwarded-Host": ""} {
		if got := strings.Join(sent.Header[name], "|"); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestVia(t *testing.T) { onPaths(t, testVia) }
func testVia(t *testing.T, via path) {
	leaktest.Check(t)
	add := proxy.Options{Rewrite: func(o *proxy.Outbound) { o.AddVia("culvert") }}
	sent := sentFor(t, via, add, overTCP, "GET / HTTP/1.1\r\nHost: a\r\nVia: 1.0 old, HTTP/2 other (comment)\r\n\r\n")
	if got := strings.Join(sent.Header["Via"], ", "); got != "1.0 old, HTTP/2 other (comment), 1.1 culvert" {
		t.Errorf("Via %q", got)
	}
	for name, want := range map[string]bool{"culvert": true, "CULVERT": true, "other": true, "comment": false, "1.0": false} {
		if proxy.HasVia(sent.Header, name) != want {
			t.Errorf("HasVia(%q) is not %v", name, want)
		}
	}
	sent = sentFor(t, via, add, overTCP, "GET / HTTP/1.0\r\nHost: a\r\n\r\n")
	if got := sent.Header.Get("Via"); got != "1.0 culvert" {
		t.Errorf("Via %q", got)
	}
}

// Paths are changed as they were written: no escape is lost, and the query is kept.
func TestPaths(t *testing.T) { onPaths(t, testPaths) }
func testPaths(t *testing.T, via path) {
	leaktest.Check(t)
	strip := func(prefix string) func(*proxy.Outbound) {
		return func(o *proxy.Outbound) { o.StripPrefix(prefix) }
	}
	replace := func(re, with string) func(*proxy.Outbound) {
		return func(o *proxy.Outbound) { o.RewritePath(regexp.MustCompile(re), with) }
	}
	target, heads := recording(t, ok)
	for _, test := range []struct {
		rewrite    func(*proxy.Outbound)
		path, want string
	}{
		{strip("/api"), "/api/x%2Fy/?b=%zz&a=1", "/x%2Fy/?b=%zz&a=1"},
		{strip("/api/"), "/api/x", "/x"},
		{strip("/api"), "/api", "/"},
		{strip("/api"), "/api?x", "/?x"},
		{strip("/api"), "/api//x", "//x"},
		{strip("/api"), "/apis/x", "/apis/x"},
		{strip("/a%2Fb"), "/a%2Fb/c", "/c"},
		{strip("/a/b"), "/a%2Fb/c", "/a%2Fb/c"},
		{strip(""), "/x", "/x"},
		{func(o *proxy.Outbound) { o.AddPrefix("/v1/") }, "/x%20y?q", "/v1/x%20y?q"},
		{replace("^/old/(.*)", "/new/$1"), "/old/a%2Fb?c", "/new/a%2Fb?c"},
		{replace("^/old", ""), "/old", "/"},
		{replace("^/old/", ""), "/old/x", "/x"},
		{replace("^/nothing", "/"), "/old%41", "/old%41"},
		{replace("x", "%zz"), "/x", "/%zz"},
	} {
		p := newProxy(t, via, proxy.Options{Upstream: groupAt(t, upstream.Options{}, target), Rewrite: test.rewrite})
		c := wiretest.Dial(t, wiretest.Serve(t, p))
		c.Send("GET " + test.path + " HTTP/1.1\r\nHost: a\r\n\r\n")
		c.Status(200)
		line, _, _ := strings.Cut(wiretest.Await(t, heads, "request"), " HTTP/1.1\r\n")
		if line != "GET "+test.want {
			t.Errorf("%s became %q, want %q", test.path, line, test.want)
		}
	}
}

func TestHost(t *testing.T) { onPaths(t, testHost) }
func testHost(t *testing.T, via path) {
	leaktest.Check(t)
	for want, rewrite := range map[string]func(*proxy.Outbound){
		"example.com": func(*proxy.Outbound) {},
		"other.test":  func(o *proxy.Outbound) { o.Out.Host = "other.test" },
		"127.0.0.1":   func(o *proxy.Outbound) { o.Out.Host = "" }, // the target's
	} {
		sent := sentFor(t, via, proxy.Options{Rewrite: rewrite}, overTCP, "GET / HTTP/1.1\r\nHost: example.com\r\n\r\n")
		if host, _, _ := strings.Cut(sent.Host, ":"); host != want {
			t.Errorf("Host %q, want %q", sent.Host, want)
		}
	}
}

const getShop = "GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n"

// responseTo sends a request through a proxy whose target, known as app:8080 and as
// app.internal, responds with the header fields, and returns the header that the client gets.
func responseTo(t *testing.T, reach front, request, fields string, rewrite func(*proxy.Response), around ...culvert.Filter) http.Header {
	t.Helper()
	target := wiretest.Replying(t, "HTTP/1.1 302 Found\r\nContent-Length: 0\r\n"+fields+"\r\n")
	transport := &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, target)
	}}
	t.Cleanup(transport.CloseIdleConnections)
	p := newProxy(t, anyPath, proxy.Options{Upstream: groupAt(t, upstream.Options{}, "app:8080"), ModifyResponse: rewrite, Transport: transport,
		Rewrite: func(o *proxy.Outbound) { o.Out.Host = "app.internal" }})
	c := reach(t, filters.NewChain(around...).ThenFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Filter", "set before")
		p.ServeHTTP(w, r)
	}))
	c.Send(request)
	resp, _ := c.Response("GET")
	return resp.Header
}

func TestLocations(t *testing.T) {
	leaktest.Check(t)
	for _, test := range []struct {
		rewrite        func(*proxy.Response)
		location, want string
	}{
		{(*proxy.Response).FixLocation, "http://app.internal/x?y=%zz#f", "https://shop.example/x?y=%zz#f"},
		{(*proxy.Response).FixLocation, "http://APP:8080", "https://shop.example"},
		{(*proxy.Response).FixLocation, "http://app:8080?q", "https://shop.example?q"},
		{(*proxy.Response).FixLocation, "http://app:9090/x", "http://app:9090/x"},
		{(*proxy.Response).FixLocation, "http://other.example/x", "http://other.example/x"},
		{(*proxy.Response).FixLocation, "/x", "/x"},
		{(*proxy.Response).FixLocation, "//app.internal/x", "https://shop.example/x"},
		{(*proxy.Response).FixLocation, "http://[bad", "http://[bad"},
		{func(a *proxy.Response) { a.ReplaceLocation("http://app:8080/", "/app/") }, "http://app:8080/x", "/app/x"},
		{func(a *proxy.Response) { a.ReplaceLocation("http://app:8080/", "/app/") }, "http://app:8081/x", "http://app:8081/x"},
	} {
		got := responseTo(t, overTLS, getShop, "Location: "+test.location+"\r\nContent-Location: "+test.location+"\r\nRefresh: 5; URL='"+test.location+"'\r\n", test.rewrite)
		want := http.Header{"Location": {test.want}, "Content-Location": {test.want}, "Refresh": {"5; URL='" + test.want + "'"}}
		for name := range want {
			if got.Get(name) != want.Get(name) {
				t.Errorf("%s: %q became %q, want %q", name, test.location, got.Get(name), want.Get(name))
			}
		}
	}
	got := responseTo(t, overTCP, "GET / HTTP/1.1\r\nHost: edge\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: shop.example\r\n\r\n",
		"Location: http://app.internal/\r\nRefresh: 5\r\n", (*proxy.Response).FixLocation, trusting(t))
	if got.Get("Location") != "https://shop.example/" || got.Get("Refresh") != "5" {
		t.Errorf("behind a trusted proxy: %v", got)
	}
}

func TestCookies(t *testing.T) {
	leaktest.Check(t)
	none := func(string) string { return "" }
	to := func(v string) func(string) string { return func(string) string { return v } }
	for _, test := range []struct {
		rewrite    proxy.CookieRewrite
		line, want string
	}{
		{proxy.CookieRewrite{}, "a=b; Path=/x;Odd; SECURE", "a=b; Path=/x;Odd; SECURE"},
		{proxy.CookieRewrite{Domain: none}, "a=b; domain=app.internal; Path=/", "a=b; Path=/"},
		{proxy.CookieRewrite{Domain: to("shop.example")}, "a=b; Domain=app.internal", "a=b; Domain=shop.example"},
		{proxy.CookieRewrite{Domain: to("shop.example")}, "a=b", "a=b"},
		{proxy.CookieRewrite{Path: func(p string) string { return "/app" + p }}, `a="b; c"; Path=/x`, `a="b; c"; Path=/app/x`},
		{proxy.CookieRewrite{Secure: true, HTTPOnly: true, SameSite: "Strict"}, "a=b", "a=b; Secure; HttpOnly; SameSite=Strict"},
		{proxy.CookieRewrite{Secure: true, HTTPOnly: true, SameSite: "Strict"}, "a=b; secure; httponly; samesite=None", "a=b; secure; httponly; samesite=None"},
		{proxy.CookieRewrite{Domain: none}, "", ""},
		{proxy.CookieRewrite{Only: func(name string) bool { return name == "a" }, Secure: true}, "a = b", "a = b; Secure"},
		{proxy.CookieRewrite{Only: func(name string) bool { return name != "a" }, Secure: true}, "a=b", "a=b"},
		{proxy.CookieRewrite{Remove: []string{"secure", "SameSite"}, SameSite: "Lax"}, "a=b; Secure; samesite=None; path=/", "a=b; SameSite=Lax; path=/"},
		{proxy.CookieRewrite{Domain: to("shop.example")}, "a=b;domain = x; Path", "a=b;domain =shop.example; Path"},
	} {
		got := responseTo(t, overTCP, getShop, "Set-Cookie: first=1\r\nSet-Cookie: "+test.line+"\r\n", func(a *proxy.Response) { a.RewriteCookies(test.rewrite) })
		if lines := got["Set-Cookie"]; len(lines) != 2 || lines[1] != test.want {
			t.Errorf("%q became %q, want %q", test.line, lines, test.want)
		}
	}
}

// Of a response that is replaced nothing is sent. If the replacement writes nothing, the
// outer handler may respond.
func TestResponseIsReplaced(t *testing.T) {
	leaktest.Check(t)
	got := responseTo(t, overTCP, getShop, "X-Of-Target: x\r\n", func(a *proxy.Response) {
		a.ServeInstead(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Header().Set("X-Instead", r.Host) }))
	})
	if got.Get("X-Of-Target") != "" || got.Get("Location") != "" || got.Get("X-Instead") != "shop.example" || got.Get("X-Filter") != "set before" {
		t.Errorf("fields %v", got)
	}
}

func TestResponseFields(t *testing.T) {
	leaktest.Check(t)
	got := responseTo(t, overTCP, getShop, "X-Powered-By: x\r\nServer: y\r\nVia: 1.1 inner\r\n", func(a *proxy.Response) {
		if a.Status != 302 || a.In.Host != "shop.example" || a.Out.Host != "app.internal" || a.Header.Get("X-Filter") != "" {
			t.Errorf("response %+v", a)
		}
		a.Header.Del("x-powered-by")
		a.Header.Del("X-Filter")
		a.AddVia("culvert")
	})
	if got.Get("X-Powered-By") != "" || got.Get("Server") != "y" || got.Get("X-Filter") != "set before" || strings.Join(got["Via"], ", ") != "1.1 inner, 1.1 culvert" {
		t.Errorf("fields %v", got)
	}
}

// Trailers follow their policies in both directions, announced or not.
func TestTrailerPolicies(t *testing.T) { onPaths(t, testTrailerPolicies) }
func testTrailerPolicies(t *testing.T, via path) {
	leaktest.Check(t)
	for name, test := range map[string]struct {
		policy func(string) bool
		want   string
	}{
		"all":  {nil, "X-One: 1\r\nX-Two: 2\r\n"},
		"none": {proxy.OnlyTrailers(), ""},
		"list": {proxy.OnlyTrailers("x-two", "x-three"), "X-Two: 2\r\n"},
	} {
		for announcement, announced := range map[string]string{"announced": "Trailer: X-One, X-Two\r\n", "unannounced": ""} {
			t.Run(name+", "+announcement, func(t *testing.T) {
				seen := make(chan string, 1)
				target := wiretest.Target(t, func(p *wiretest.Peer) {
					p.Header()
					p.Receive("2\r\nhi\r\n0\r\n")
					seen <- p.Header()
					p.Send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n" + announced + "\r\n2\r\nhi\r\n0\r\nX-One: 1\r\nX-Two: 2\r\n\r\n")
				})
				p := newProxy(t, via, proxy.Options{Upstream: groupAt(t, upstream.Options{}, target), RequestTrailer: test.policy, ResponseTrailer: test.policy})
				c := wiretest.Dial(t, wiretest.Serve(t, p))
				c.Send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n" + announced + "\r\n2\r\nhi\r\n0\r\nX-One: 1\r\nX-Two: 2\r\n\r\n")
				if got := sorted(wiretest.Await(t, seen, "request")); got != test.want {
					t.Errorf("the target got %q, want %q", got, test.want)
				}
				c.Header()
				c.Receive("2\r\nhi\r\n0\r\n")
				if got := sorted(c.Header()); got != test.want {
					t.Errorf("the client got %q, want %q", got, test.want)
				}
			})
		}
	}
}

// sorted are the lines of trailers in order.
func sorted(trailers string) string {
	_, lines, _ := strings.Cut(wiretest.Lines("\r\n"+trailers), "\n")
	if lines == ":" || lines == "" {
		return ""
	}
	return strings.NewReplacer("x-one", "X-One", "x-two", "X-Two").Replace(strings.ReplaceAll(lines, "\n", "\r\n") + "\r\n")
}

// Drain lets what runs end, and refuses the rest.
func TestProxyDrain(t *testing.T) { onPaths(t, testProxyDrain) }
func testProxyDrain(t *testing.T, via path) {
	leaktest.Check(t)
	arrived, release := make(chan struct{}), make(chan struct{})
	respond := sync.OnceFunc(func() { close(release) })
	defer respond() // also if the test fails: the target's end is waited for
	target := wiretest.Target(t, func(p *wiretest.Peer) {
		p.Header()
		close(arrived)
		<-release
		p.Send(ok)
	})
	p := newProxy(t, via, proxy.Options{Upstream: groupAt(t, upstream.Options{Name: "app"}, target)})
	addr := wiretest.Serve(t, p)
	c := wiretest.Dial(t, addr)
	c.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	wiretest.Await(t, arrived, "request")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Drain(ctx); err != context.Canceled {
		t.Errorf("drained with a request in flight: %v", err)
	}
	late := wiretest.Dial(t, addr)
	late.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	late.Status(503)
	respond()
	c.Status(200)
	if err := p.Drain(t.Context()); err != nil {
		t.Error(err)
	}
}

// A client that is refused for now hears when to come again.
func TestRetryAfter(t *testing.T) { onPaths(t, testRetryAfter) }
func testRetryAfter(t *testing.T, via path) {
	leaktest.Check(t)
	arrived, release := make(chan struct{}), make(chan struct{})
	respond := sync.OnceFunc(func() { close(release) })
	defer respond() // also if the test fails: the target's end is waited for
	target := wiretest.Target(t, func(p *wiretest.Peer) {
		p.Header()
		close(arrived)
		<-release
		p.Send(ok)
	})
	addr := wiretest.Serve(t, newProxy(t, via, proxy.Options{Upstream: groupOf(t, upstream.Options{RetryAfter: 1500 * time.Millisecond}, upstream.Target{Addr: target, MaxConns: 1})}))
	first, second := wiretest.Dial(t, addr), wiretest.Dial(t, addr)
	first.Send(getShop)
	wiretest.Await(t, arrived, "request")
	second.Send(getShop)
	if resp, _ := second.Response("GET"); resp.StatusCode != 503 || resp.Header.Get("Retry-After") != "2" {
		t.Errorf("response %s, Retry-After %q", resp.Status, resp.Header.Get("Retry-After"))
	}
	respond()
	first.Status(200)
}
