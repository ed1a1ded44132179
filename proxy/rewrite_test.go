package proxy_test

import (
	"context"
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"regexp"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/internal/client"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// sentFor runs one request through a proxy and returns what the transport was given.
func sentFor(t *testing.T, o proxy.Options, r *http.Request) *http.Request {
	t.Helper()
	var sent *http.Request
	o.Transport = transport(func(r *http.Request) (*http.Response, error) {
		sent = r
		return &http.Response{StatusCode: 204, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
	})
	o.Upstream = groupAt(t, upstream.Options{}, "a:1")
	newProxy(t, o).ServeHTTP(httptest.NewRecorder(), r)
	return sent
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// What a client claims of itself never gets through; what a trusted proxy says
// does.
func TestForwardedFields(t *testing.T) {
	trusted := func(r *http.Request) *http.Request {
		return r.WithContext(client.With(r.Context(), &client.Info{Addr: netip.MustParseAddr("203.0.113.5"),
			Via: []string{"203.0.113.5", "2001:db8::7"}, Proto: "https", Host: "shop.example"}))
	}
	plain := func(r *http.Request) *http.Request { return r }
	for _, test := range []struct {
		name   string
		mutate func(*http.Request) *http.Request
		want   map[string]string
	}{
		{"nobody is trusted", plain, map[string]string{
			"X-Forwarded-For": "192.0.2.1", "X-Forwarded-Host": "example.com", "X-Forwarded-Proto": "http",
			"Forwarded": `for=192.0.2.1;host="example.com";proto=http`, "X-Real-Ip": ""}},
		{"over TLS", func(r *http.Request) *http.Request { r.TLS = &tls.ConnectionState{}; return r }, map[string]string{
			"X-Forwarded-Proto": "https", "Forwarded": `for=192.0.2.1;host="example.com";proto=https`}},
		{"IPv6", func(r *http.Request) *http.Request { r.RemoteAddr = "[2001:db8::1]:99"; return r }, map[string]string{
			"X-Forwarded-For": "2001:db8::1", "Forwarded": `for="[2001:db8::1]";host="example.com";proto=http`}},
		{"a unix socket", func(r *http.Request) *http.Request { r.RemoteAddr = "@"; r.Host = `a"b`; return r }, map[string]string{
			"X-Forwarded-For": "", "Forwarded": `for=unknown;host="a\"b";proto=http`}},
		{"behind trusted proxies", trusted, map[string]string{
			"X-Forwarded-For": "203.0.113.5, 2001:db8::7, 192.0.2.1", "X-Forwarded-Host": "shop.example", "X-Forwarded-Proto": "https",
			"Forwarded": `for=203.0.113.5, for="[2001:db8::7]", for=192.0.2.1;host="shop.example";proto=https`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := httptest.NewRequest("GET", "/", nil)
			for _, name := range []string{"X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "Forwarded", "X-Real-Ip"} {
				r.Header.Set(name, "made up")
			}
			sent := sentFor(t, proxy.Options{Rewrite: func(o *proxy.Outbound) {
				o.SetXForwarded()
				o.SetForwarded()
			}}, test.mutate(r))
			for name, want := range test.want {
				if got := strings.Join(sent.Header[name], "|"); got != want {
					t.Errorf("%s: %q, want %q", name, got, want)
				}
			}
		})
	}
}

func TestVia(t *testing.T) {
	r := httptest.NewRequest("GET", "/", nil)
	r.Header.Set("Via", "1.0 old, HTTP/2 other (comment)")
	sent := sentFor(t, proxy.Options{Rewrite: func(o *proxy.Outbound) { o.AddVia("culvert") }}, r)
	if got := strings.Join(sent.Header["Via"], ", "); got != "1.0 old, HTTP/2 other (comment), 1.1 culvert" {
		t.Errorf("Via %q", got)
	}
	if r.Header.Get("Via") != "1.0 old, HTTP/2 other (comment)" {
		t.Error("the client's request was changed")
	}
	for name, want := range map[string]bool{"culvert": true, "CULVERT": true, "other": true, "comment": false, "1.0": false} {
		if proxy.HasVia(sent.Header, name) != want {
			t.Errorf("HasVia(%q) is not %v", name, want)
		}
	}
	r.ProtoMajor, r.ProtoMinor = 2, 0
	sent = sentFor(t, proxy.Options{Rewrite: func(o *proxy.Outbound) { o.AddVia("culvert") }}, r)
	if got := sent.Header["Via"][1]; got != "2 culvert" {
		t.Errorf("Via %q", got)
	}
}

// Paths are changed as they were written: not an escape is lost, and the query
// stays.
func TestPaths(t *testing.T) {
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
		p := newProxy(t, proxy.Options{Upstream: groupAt(t, upstream.Options{}, target), Rewrite: test.rewrite})
		c := wiretest.Dial(t, wiretest.Serve(t, p))
		c.Send("GET " + test.path + " HTTP/1.1\r\nHost: a\r\n\r\n")
		c.Status(200)
		line, _, _ := strings.Cut(wiretest.Await(t, heads, "request"), " HTTP/1.1\r\n")
		if line != "GET "+test.want {
			t.Errorf("%s became %q, want %q", test.path, line, test.want)
		}
	}
}

func TestHost(t *testing.T) {
	for want, rewrite := range map[string]func(*proxy.Outbound){
		"example.com": func(*proxy.Outbound) {},
		"other.test":  func(o *proxy.Outbound) { o.SetHost("other.test") },
		"":            func(o *proxy.Outbound) { o.SetHost("") },
	} {
		if sent := sentFor(t, proxy.Options{Rewrite: rewrite}, httptest.NewRequest("GET", "/", nil)); sent.Host != want {
			t.Errorf("Host %q, want %q", sent.Host, want)
		}
	}
}

// answerTo sends a request through a proxy whose target answers with the fields.
func answerTo(t *testing.T, r *http.Request, fields http.Header, rewrite func(*proxy.Answer)) http.Header {
	t.Helper()
	p := newProxy(t, proxy.Options{Upstream: groupAt(t, upstream.Options{}, "app:8080"), RewriteAnswer: rewrite,
		Rewrite: func(o *proxy.Outbound) { o.SetHost("app.internal") },
		Transport: transport(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 302, Header: fields.Clone(), Body: http.NoBody, Request: r}, nil
		})})
	w := httptest.NewRecorder()
	w.Header().Set("X-Filter", "set before")
	p.ServeHTTP(w, r)
	return w.Result().Header
}

func TestLocations(t *testing.T) {
	overTLS := httptest.NewRequest("GET", "https://shop.example/", nil)
	behind := httptest.NewRequest("GET", "http://edge/", nil)
	behind = behind.WithContext(client.With(context.Background(), &client.Info{Proto: "https", Host: "shop.example"}))
	replace := func(a *proxy.Answer) { a.ReplaceLocation("http://app:8080/", "/app/") }
	for _, test := range []struct {
		r              *http.Request
		rewrite        func(*proxy.Answer)
		location, want string
	}{
		{overTLS, (*proxy.Answer).FixLocation, "http://app.internal/x?y=%zz#f", "https://shop.example/x?y=%zz#f"},
		{overTLS, (*proxy.Answer).FixLocation, "http://APP:8080", "https://shop.example"},
		{overTLS, (*proxy.Answer).FixLocation, "http://app:8080?q", "https://shop.example?q"},
		{overTLS, (*proxy.Answer).FixLocation, "http://app:9090/x", "http://app:9090/x"},
		{overTLS, (*proxy.Answer).FixLocation, "http://other.example/x", "http://other.example/x"},
		{overTLS, (*proxy.Answer).FixLocation, "/x", "/x"},
		{overTLS, (*proxy.Answer).FixLocation, "//app.internal/x", "https://shop.example/x"},
		{overTLS, (*proxy.Answer).FixLocation, "http://[bad", "http://[bad"},
		{behind, (*proxy.Answer).FixLocation, "http://app.internal/", "https://shop.example/"},
		{overTLS, replace, "http://app:8080/x", "/app/x"},
		{overTLS, replace, "http://app:8081/x", "http://app:8081/x"},
	} {
		got := answerTo(t, test.r, http.Header{"Location": {test.location}, "Content-Location": {test.location}, "Refresh": {"5; URL='" + test.location + "'"}}, test.rewrite)
		want := http.Header{"Location": {test.want}, "Content-Location": {test.want}, "Refresh": {"5; URL='" + test.want + "'"}}
		for name := range want {
			if got.Get(name) != want.Get(name) {
				t.Errorf("%s: %q became %q, want %q", name, test.location, got.Get(name), want.Get(name))
			}
		}
	}
	if got := answerTo(t, overTLS, http.Header{"Refresh": {"5"}}, (*proxy.Answer).FixLocation); got.Get("Refresh") != "5" {
		t.Errorf("Refresh %q", got.Get("Refresh"))
	}
}

func TestCookies(t *testing.T) {
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
	} {
		got := answerTo(t, httptest.NewRequest("GET", "/", nil), http.Header{"Set-Cookie": {"first=1", test.line}}, func(a *proxy.Answer) { a.RewriteCookies(test.rewrite) })
		if lines := got["Set-Cookie"]; len(lines) != 2 || lines[1] != test.want {
			t.Errorf("%q became %q, want %q", test.line, lines, test.want)
		}
	}
}

func TestAnswerFields(t *testing.T) {
	got := answerTo(t, httptest.NewRequest("GET", "/", nil), http.Header{"X-Powered-By": {"x"}, "Server": {"y"}, "Via": {"1.1 inner"}}, func(a *proxy.Answer) {
		if a.Status != 302 || a.In.Host != "example.com" || a.Out.Host != "app.internal" || a.Header.Get("X-Filter") != "" {
			t.Errorf("answer %+v", a)
		}
		a.Hide("x-powered-by", "X-Filter")
		a.AddVia("culvert")
	})
	if got.Get("X-Powered-By") != "" || got.Get("Server") != "y" || got.Get("X-Filter") != "set before" || strings.Join(got["Via"], ", ") != "1.1 inner, 1.1 culvert" {
		t.Errorf("fields %v", got)
	}
}

// Trailers follow their policies in both directions, announced or not.
func TestTrailerPolicies(t *testing.T) {
	leaktest.Check(t)
	for name, test := range map[string]struct {
		policy func(string) bool
		want   string
	}{
		"all":  {nil, "X-One: 1\r\nX-Two: 2\r\n"},
		"none": {proxy.NoTrailers, ""},
		"list": {proxy.OnlyTrailers("x-two", "x-three"), "X-Two: 2\r\n"},
	} {
		for announcement, announced := range map[string]string{"announced": "Trailer: X-One, X-Two\r\n", "unannounced": ""} {
			t.Run(name+", "+announcement, func(t *testing.T) {
				seen := make(chan string, 1)
				target := wiretest.Target(t, func(p *wiretest.Peer) {
					p.Head()
					p.Receive("2\r\nhi\r\n0\r\n")
					seen <- p.Head()
					p.Send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n" + announced + "\r\n2\r\nhi\r\n0\r\nX-One: 1\r\nX-Two: 2\r\n\r\n")
				})
				p := newProxy(t, proxy.Options{Upstream: groupAt(t, upstream.Options{}, target), RequestTrailer: test.policy, ResponseTrailer: test.policy})
				c := wiretest.Dial(t, wiretest.Serve(t, p))
				c.Send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n" + announced + "\r\n2\r\nhi\r\n0\r\nX-One: 1\r\nX-Two: 2\r\n\r\n")
				if got := sorted(wiretest.Await(t, seen, "request")); got != test.want {
					t.Errorf("the target got %q, want %q", got, test.want)
				}
				c.Head()
				c.Receive("2\r\nhi\r\n0\r\n")
				if got := sorted(c.Head()); got != test.want {
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
func TestProxyDrain(t *testing.T) {
	leaktest.Check(t)
	asked, release := make(chan struct{}), make(chan struct{})
	target := wiretest.Target(t, func(p *wiretest.Peer) {
		p.Head()
		close(asked)
		<-release
		p.Send(ok)
	})
	p := newProxy(t, proxy.Options{Upstream: groupAt(t, upstream.Options{Name: "app"}, target)})
	addr := wiretest.Serve(t, p)
	c := wiretest.Dial(t, addr)
	c.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	wiretest.Await(t, asked, "request")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Drain(ctx); err != context.Canceled {
		t.Errorf("drained with a request in flight: %v", err)
	}
	late := wiretest.Dial(t, addr)
	late.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	late.Status(503)
	close(release)
	c.Status(200)
	if err := p.Drain(t.Context()); err != nil {
		t.Error(err)
	}
}

// A client that is refused for now hears when to come again.
func TestRetryAfter(t *testing.T) {
	p := newProxy(t, proxy.Options{Upstream: groupOf(t, upstream.Options{RetryAfter: 1500 * 1e6}, upstream.Target{Addr: "a:1", MaxConns: 1}),
		Transport: transport(func(r *http.Request) (*http.Response, error) {
			w := httptest.NewRecorder()
			p2 := r.Context().Value(inner{}).(*proxy.Proxy)
			p2.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
			if w.Code != 503 || w.Header().Get("Retry-After") != "2" {
				t.Errorf("status %d, Retry-After %q", w.Code, w.Header().Get("Retry-After"))
			}
			return &http.Response{StatusCode: 204, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
		})})
	r := httptest.NewRequest("GET", "/", nil)
	p.ServeHTTP(httptest.NewRecorder(), r.WithContext(context.WithValue(r.Context(), inner{}, p)))
}

// inner is the key of the proxy that the transport of TestRetryAfter asks again.
type inner struct{}
