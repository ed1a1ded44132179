package filters_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/filters/filtertest"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
	"github.com/culvert-go/culvert/wsupgrade"
)

// status returns a handler that responds with a status and header fields.
func status(code int, fields ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(fields); i += 2 {
			w.Header().Add(fields[i], fields[i+1])
		}
		w.WriteHeader(code)
	}
}

func TestForwardAuthKeepsWhatProxyingNeeds(t *testing.T) {
	f := good(t)(filters.ForwardAuth(filters.ForwardAuthOptions{To: status(204, "X-User", "a", "Set-Cookie", "a=b"),
		ResponseFields: []string{"X-User"}, SetCookies: true, CacheTime: time.Minute}))
	filtertest.Test(t, f)
}

// No client can forge what the subrequest says of its request, nor what its response says of the client.
func TestForwardAuthCannotBeForged(t *testing.T) {
	leaktest.Check(t)
	asked := make(chan *http.Request, 1)
	auth := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Clone(context.Background())
		if body, err := io.ReadAll(r.Body); len(body) > 0 || err != nil || r.ContentLength != 0 {
			t.Errorf("a body %q, %v", body, err)
		}
		w.Header().Set("X-User", "alice")
	})
	// Through a proxy, which removes what clients forge as well.
	to := forwardTo(t, wiretest.Serve(t, http.HandlerFunc(auth)))
	received := make(chan http.Header, 1)
	trailers := make(chan http.Header, 1)
	f := good(t)(filters.ForwardAuth(filters.ForwardAuthOptions{To: to, URI: "/verify?a=b", ResponseFields: []string{"x-user", "X-Groups"}}))
	addr := wiretest.Serve(t, filters.NewChain(f).ThenFunc(func(_ http.ResponseWriter, r *http.Request) {
		received <- r.Header.Clone()
		body, _ := io.ReadAll(r.Body)
		if string(body) != "content" {
			t.Errorf("content %q", body)
		}
		trailers <- r.Trailer.Clone()
	}))
	client := wiretest.Dial(t, addr)
	client.Send("PUT /a%2Fb/\"c?d HTTP/1.1\r\nHost: example.test\r\nX-User: admin\r\nX_User: admin\r\nx-groups: admins\r\nX_Groups: admins\r\n" +
		"X-Forwarded-Uri: /forged\r\nX-Original-URL: /forged\r\nX-Original-Uri: /forged\r\nX_Forwarded_Uri: /forged\r\nX-Forwarded-Method: GET\r\nX-Original-Method: GET\r\n" +
		"X-Forwarded-For: 9.9.9.9\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: forged\r\nAuthorization: me\r\nX-Other: 1\r\nUpgrade: websocket\r\n" +
		"Content-Type: application/grpc\r\nRange: bytes=0-1\r\nTransfer-Encoding: chunked\r\nTrailer: X-User\r\n\r\n" +
		"7\r\ncontent\r\n0\r\nX-User: admin\r\nX_Groups: admins\r\nX-Kept: 1\r\n\r\n")
	client.Status(200)
	sub := wiretest.Await(t, asked, "subrequest")
	if sub.Method != "GET" || sub.RequestURI != "/verify?a=b" || sub.Host != "example.test" {
		t.Errorf("the subrequest is %s %s at %s", sub.Method, sub.RequestURI, sub.Host)
	}
	target := `/a%2Fb/"c?d`
	want := http.Header{"X-Forwarded-For": {"127.0.0.1"}, "X-Forwarded-Host": {"example.test"}, "X-Forwarded-Proto": {"http"},
		"X-Forwarded-Method": {"PUT"}, "X-Original-Method": {"PUT"}, "X-Forwarded-Uri": {target}, "X-Original-Uri": {target},
		"X-Original-Url": {"http://example.test" + target}, "Authorization": {"me"}}
	if !reflect.DeepEqual(sub.Header, want) {
		t.Errorf("the subrequest has\n%v, want\n%v", sub.Header, want)
	}
	h := wiretest.Await(t, received, "request")
	for name := range h {
		switch strings.ReplaceAll(strings.ToLower(name), "_", "-") {
		case "x-groups":
			t.Errorf("the client's %s was kept", name)
		case "x-user":
			if name != "X-User" || !reflect.DeepEqual(h[name], []string{"alice"}) {
				t.Errorf("%s: %q", name, h[name])
			}
		}
	}
	if h.Get("X-User") != "alice" {
		t.Error("the response's field is missing")
	}
	if got := wiretest.Await(t, trailers, "trailers"); !reflect.DeepEqual(got, http.Header{"X-Kept": {"1"}}) {
		t.Errorf("trailers %v", got)
	}
}

// Over HTTP/2 trailers follow a body of a known length, too.
func TestForwardAuthRemovesTrailersOverHTTP2(t *testing.T) {
	leaktest.Check(t)
	trailers := make(chan http.Header, 1)
	f := good(t)(filters.ForwardAuth(filters.ForwardAuthOptions{To: status(204), ResponseFields: []string{"X-User"}}))
	frames := wiretest.NewFrames(t, filters.NewChain(f).ThenFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		trailers <- r.Trailer.Clone()
	}))
	frames.Post(false, "content-length", "4", "trailer", "X-User, X-Kept")
	frames.Data(false, "body")
	frames.Trailers("x-user", "admin", "x-kept", "1")
	if got := wiretest.Await(t, trailers, "trailers"); !reflect.DeepEqual(got, http.Header{"X-Kept": {"1"}}) {
		t.Errorf("trailers %v", got)
	}
	if s := frames.Status(); s != "200" {
		t.Error(s)
	}
}

// forwardTo returns a proxy to addr.
func forwardTo(t *testing.T, addr string) *proxy.Proxy {
	g, err := upstream.New(upstream.Options{}, upstream.Target{Addr: addr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() })
	p, err := proxy.New(proxy.Options{Upstream: g})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// The trusted proxies in front of the gateway are described as package proxy describes them.
func TestForwardAuthBehindRealIP(t *testing.T) {
	var sub http.Header
	realIP := good(t)(filters.RealIP(filters.RealIPOptions{Trusted: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}}))
	f := good(t)(filters.ForwardAuth(filters.ForwardAuthOptions{To: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sub = r.Header
		w.WriteHeader(204)
	})}))
	r := get("X-Forwarded-For", "1.1.1.1, 198.51.100.7", "X-Forwarded-Proto", "https", "X-Forwarded-Host", "front.test")
	filters.NewChain(realIP, f).Then(respond("ok")).ServeHTTP(httptest.NewRecorder(), r)
	if sub.Get("X-Forwarded-For") != "198.51.100.7, 192.0.2.1" || sub.Get("X-Original-Url") != "https://front.test/" {
		t.Errorf("%v", sub)
	}
}

// What a WebSocket over HTTP/2 and a CONNECT are judged by.
func TestForwardAuthOfConnect(t *testing.T) {
	var sub *http.Request
	f := good(t)(filters.ForwardAuth(filters.ForwardAuthOptions{To: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sub = r
		w.WriteHeader(204)
	})}))
	webSocket := httptest.NewRequest("GET", "/socket?a", nil)
	webSocket.Method, webSocket.Header = "CONNECT", http.Header{":protocol": {"websocket"}}
	tunnel := httptest.NewRequest("CONNECT", "db.test:5432", nil)
	for want, r := range map[string]*http.Request{"GET /socket?a /socket?a http://example.com/socket?a": webSocket, "CONNECT db.test:5432 / http://db.test:5432": tunnel} {
		through(f, respond("ok"), r)
		if got := sub.Header.Get("X-Forwarded-Method") + " " + sub.Header.Get("X-Forwarded-Uri") + " " + sub.RequestURI + " " + sub.Header.Get("X-Original-Url"); got != want {
			t.Errorf("judged by %s, want %s", got, want)
		}
	}
}

// A request passes if the response is a 2xx, and a refusal is sent to the client.
func TestForwardAuthDecides(t *testing.T) {
	for name, test := range map[string]struct {
		auth     http.HandlerFunc
		status   int // 200: passed
		body     string
		fields   http.Header
		redirect bool
	}{
		"200":       {auth: respond("ignored"), status: 200, body: "ok"},
		"204":       {auth: status(204, "X-User", "a", "X-Other", "a"), status: 200, body: "ok"},
		"401":       {auth: status(401, "Www-Authenticate", "Basic"), status: 401, body: "Unauthorized\n", fields: http.Header{"Www-Authenticate": {"Basic"}, "Cache-Control": {"no-store"}}},
		"403":       {auth: status(403, "Set-Cookie", "a=b", "Cache-Control", "private", "X-User", "secret", "Connection", "close", "Keep-Alive", "1"), status: 403, body: "Forbidden\n", fields: http.Header{"Set-Cookie": {"a=b"}, "Cache-Control": {"private"}, "X-User": nil, "Connection": nil, "Keep-Alive": nil}},
		"content":   {auth: denied("no <b>entry</b>", "Content-Type", "text/html", "Content-Digest", "a"), status: 401, body: "no <b>entry</b>", fields: http.Header{"Content-Type": {"text/html"}, "Content-Digest": {"a"}}},
		"too long":  {auth: denied(strings.Repeat("a", 101), "Content-Type", "text/html", "Content-Encoding", "br", "Content-Digest", "a"), status: 401, body: "Unauthorized\n", fields: http.Header{"Content-Encoding": nil, "Content-Digest": nil}},
		"aborted":   {auth: abort(denied("half")), status: 401, body: "Unauthorized\n"},
		"302":       {auth: status(302, "Location", "/login", "Set-Cookie", "a=b"), redirect: true, status: 302, body: "Found\n", fields: http.Header{"Location": {"/login"}, "Set-Cookie": {"a=b"}}},
		"301":       {auth: status(301, "Location", "/login"), redirect: true, status: 301, body: "Moved Permanently\n", fields: http.Header{"Cache-Control": {"no-store"}}},
		"no option": {auth: status(302, "Location", "/login"), status: 502, body: "Bad Gateway\n", fields: http.Header{"Location": nil}},
		"nowhere":   {auth: status(302), redirect: true, status: 502, body: "Bad Gateway\n"},
		"304":       {auth: status(304, "Location", "/login"), redirect: true, status: 502, body: "Bad Gateway\n"},
		"404":       {auth: status(404), status: 502, body: "Bad Gateway\n"},
		"500":       {auth: denied2(500, "why"), status: 502, body: "Bad Gateway\n"},
		"101":       {auth: status(101), status: 502, body: "Bad Gateway\n"},
		"101 first": {auth: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(101); w.WriteHeader(200) }, status: 502, body: "Bad Gateway\n"},
		"interim":   {auth: interim, status: 200, body: "ok"},
		"none":      {auth: func(http.ResponseWriter, *http.Request) {}, status: 502, body: "Bad Gateway\n"},
		"broken":    {auth: abort(func(http.ResponseWriter, *http.Request) {}), status: 502, body: "Bad Gateway\n"},
	} {
		t.Run(name, func(t *testing.T) {
			f := good(t)(filters.ForwardAuth(filters.ForwardAuthOptions{To: test.auth, ResponseFields: []string{"X-User"}, Redirects: test.redirect, MaxBody: 100}))
			resp, body := through(f, respond("ok", "X-Target", "1"), get())
			if resp.StatusCode != test.status || body != test.body {
				t.Errorf("status %d, content %q", resp.StatusCode, body)
			}
			if passed := resp.Header.Get("X-Target") != ""; passed != (test.status == 200) {
				t.Errorf("passed: %v", passed)
			}
			for name, want := range test.fields {
				if got := resp.Header[name]; !reflect.DeepEqual(got, want) {
					t.Errorf("%s: %q, want %q", name, got, want)
				}
			}
		})
	}
}

// denied returns a handler that responds with 401 and a content.
func denied(text string, fields ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		status(401, fields...)(w, r)
		_, _ = io.WriteString(w, text)
	}
}

func denied2(code int, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(code); _, _ = io.WriteString(w, text) }
}

// interim responds with 103, and then 200.
func interim(w http.ResponseWriter, _ *http.Request) {
	w.WriteHeader(http.StatusEarlyHints)
	w.WriteHeader(http.StatusOK)
}

// abort returns h and an abort of its response.
func abort(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		h(w, r)
		panic(http.ErrAbortHandler)
	}
}

// A proxy that can't reach the auth service lets nothing pass, also if its own response is a 200, and the Result has the error.
func TestForwardAuthFailsClosed(t *testing.T) {
	g, err := upstream.New(upstream.Options{Name: "auth"}, upstream.Target{Addr: "127.0.0.1:1", Down: true})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	for name, handler := range map[string]func(http.ResponseWriter, *http.Request, *culvert.Error){
		"default": nil,
		"a page": func(w http.ResponseWriter, _ *http.Request, _ *culvert.Error) {
			_, _ = io.WriteString(w, "we are sorry")
		},
		"a refusal": func(w http.ResponseWriter, _ *http.Request, _ *culvert.Error) { w.WriteHeader(403) },
	} {
		p, err := proxy.New(proxy.Options{Upstream: g, ErrorHandler: handler})
		if err != nil {
			t.Fatal(err)
		}
		f := good(t)(filters.ForwardAuth(filters.ForwardAuthOptions{To: p, CacheTime: time.Minute}))
		r := get()
		ctx, result := filters.WithResult(r.Context())
		resp, body := through(f, respond("ok"), r.WithContext(ctx))
		e := (*culvert.Error)(nil)
		if resp.StatusCode != 503 || body != "Service Unavailable\n" || !errors.As(result.Err, &e) || e.Kind != culvert.NoTarget || len(result.Attempts) != 0 {
			t.Errorf("%s: status %d, %q, result %+v", name, resp.StatusCode, body, result)
		}
	}
}

// The time of the subrequest is bounded, and it ends with its client. A response that is made later does not count.
func TestForwardAuthEnds(t *testing.T) {
	late := func(w http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		if w.Header().Set("X-User", "a"); r.Header.Get("Cookie") != "" {
			w.WriteHeader(200)
		}
	}
	for name, test := range map[string]struct {
		timeout, leaves, want time.Duration
		status                int // 0: aborted
		kind                  culvert.ErrorKind
	}{
		"default":     {0, time.Hour, 10 * time.Second, 504, culvert.Timeout},
		"timeout":     {time.Second, time.Hour, time.Second, 504, culvert.Timeout},
		"client gone": {-1, time.Minute, time.Minute, 0, culvert.ClientGone},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := good(t)(filters.ForwardAuth(filters.ForwardAuthOptions{To: http.HandlerFunc(late), Timeout: test.timeout}))
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				time.AfterFunc(test.leaves, cancel)
				ctx, result := filters.WithResult(ctx)
				w, start := httptest.NewRecorder(), time.Now()
				func() {
					defer func() {
						if v := recover(); (v == http.ErrAbortHandler) != (test.status == 0) || v != nil && v != http.ErrAbortHandler {
							t.Errorf("panic %v", v)
						}
					}()
					r := get()
					if test.status == 0 {
						r.Header.Set("Cookie", "late")
					}
					f(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("passed") })).ServeHTTP(w, r.WithContext(ctx))
				}()
				e := (*culvert.Error)(nil)
				if took := time.Since(start); took != test.want || !errors.As(result.Err, &e) || e.Kind != test.kind {
					t.Errorf("after %v: %v", took, result.Err)
				}
				if test.status != 0 && w.Code != test.status {
					t.Errorf("status %d", w.Code)
				}
			})
		})
	}
}

// A panic of the handler is a bug, which Recover logs, and nothing passes.
func TestForwardAuthPanics(t *testing.T) {
	f := good(t)(filters.ForwardAuth(filters.ForwardAuthOptions{To: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(200)
		panic("a bug")
	})}))
	defer func() {
		if v := recover(); v != "a bug" {
			t.Errorf("panic %v", v)
		}
	}()
	through(f, func(http.ResponseWriter, *http.Request) { t.Error("passed") }, get())
}

// Cookies of the auth service are added to those of the target, also to a 101.
func TestForwardAuthCookies(t *testing.T) {
	leaktest.Check(t)
	to := status(204, "Set-Cookie", "session=new", "Set-Cookie", "b=c")
	for _, on := range []bool{false, true} {
		f := good(t)(filters.ForwardAuth(filters.ForwardAuthOptions{To: to, SetCookies: on}))
		want := []string{"target=1"}
		if on {
			want = append(want, "session=new", "b=c")
		}
		resp, _ := through(f, respond("ok", "Set-Cookie", "target=1"), get())
		if got := resp.Header["Set-Cookie"]; !reflect.DeepEqual(got, want) {
			t.Errorf("%v: %q", on, got)
		}
	}
	target := wiretest.Target(t, func(p *wiretest.Peer) {
		p.Header()
		p.Send("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: own\r\nSet-Cookie: target=1\r\n\r\nhello")
		p.Receive("bytes")
		p.End()
	})
	g, err := upstream.New(upstream.Options{}, upstream.Target{Addr: target})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	upgrades, err := wsupgrade.New(wsupgrade.Options{Protocols: []string{"own"}})
	if err != nil {
		t.Fatal(err)
	}
	p, err := proxy.New(proxy.Options{Upstream: g, Upgrades: upgrades})
	if err != nil {
		t.Fatal(err)
	}
	auth := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "me" {
			w.WriteHeader(401)
			return
		}
		to(w, r)
	})
	addr := wiretest.Serve(t, filters.NewChain(good(t)(filters.ForwardAuth(filters.ForwardAuthOptions{To: auth, SetCookies: true}))).Then(p))
	const upgrade = "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: own\r\n"
	stranger := wiretest.Dial(t, addr)
	stranger.Send(upgrade + "\r\n")
	stranger.Status(401)
	client := wiretest.Dial(t, addr)
	client.Send(upgrade + "Authorization: me\r\n\r\n")
	h := client.Header()
	if !strings.HasPrefix(h, "HTTP/1.1 101 ") || strings.Count(h, "Set-Cookie: ") != 3 {
		t.Errorf("header %q", h)
	}
	client.Receive("hello")
	client.Send("bytes")
}

// An allowed request is allowed again for a time, but no other one. After a refusal the auth service is called each time.
func TestForwardAuthCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		auth := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked++
			if r.Header.Get("Authorization") == "" {
				w.WriteHeader(401)
				return
			}
			w.Header().Set("X-User", r.Header.Get("Authorization"))
			if c := r.Header.Get("Cookie"); c == "session" {
				w.Header().Set("Set-Cookie", "session=1")
			} else if strings.HasPrefix(c, "control: ") {
				w.Header().Set("Cache-Control", c[9:])
			}
			w.WriteHeader(200)
		})
		f := good(t)(filters.ForwardAuth(filters.ForwardAuthOptions{To: auth, ResponseFields: []string{"X-User"}, CacheTime: time.Minute, CacheSize: 3}))
		h := f(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, r.Header.Get("X-User"))
			r.Header["X-User"][0] += " changed" // the handler's own
			_ = append(r.Header["X-User"], "more")
		}))
		ask := func(what string, change func(r *http.Request), asks bool) {
			t.Helper()
			r := get("Authorization", "alice")
			if change != nil {
				change(r)
			}
			before, w := asked, httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if want := r.Header.Get("Authorization"); want != "" && w.Body.String() != want {
				t.Errorf("%s: %d, %q", what, w.Code, w.Body)
			}
			if (asked != before) != asks {
				t.Errorf("%s: asked: %v", what, !asks)
			}
		}
		ask("first", nil, true)
		ask("again", nil, false)
		ask("with a field that does not matter", func(r *http.Request) { r.Header.Set("X-Other", "1") }, false)
		time.Sleep(time.Minute - 1)
		ask("at the end", nil, false)
		time.Sleep(time.Nanosecond)
		ask("after it", nil, true)
		for name, change := range map[string]func(r *http.Request){
			"method":  func(r *http.Request) { r.Method = "POST" },
			"path":    func(r *http.Request) { r.URL.Path = "/admin" },
			"query":   func(r *http.Request) { r.URL.RawQuery = "a" },
			"host":    func(r *http.Request) { r.Host = "b" },
			"address": func(r *http.Request) { r.RemoteAddr = "192.0.2.9:1234" },
			"user":    func(r *http.Request) { r.Header.Set("Authorization", "bob") },
			"lines":   func(r *http.Request) { r.Header["Cookie"] = []string{"a", "b"} },
			"cookie":  func(r *http.Request) { r.Header.Set("Cookie", "a") },
			"agent":   func(r *http.Request) { r.Header.Set("User-Agent", "a") },
		} {
			ask(name, change, true)
			ask(name+" again", change, false)
			ask("before "+name, nil, false)
		}
		for name, again := range map[string]bool{"session": true, "control: no-store": true, "control: private, No-Cache": true,
			"control: max-age=0": true, "control: max-age=x": true, "control: max-age=30": false} {
			change := func(r *http.Request) { r.Header.Set("Cookie", name) }
			ask(name, change, true)
			ask(name+" again", change, again)
		}
		time.Sleep(30 * time.Second)
		ask("after max-age", func(r *http.Request) { r.Header.Set("Cookie", "control: max-age=30") }, true)
		stranger := func(r *http.Request) { r.Header.Del("Authorization") }
		ask("a stranger", stranger, true)
		ask("a stranger again", stranger, true)
	})
}

// The cache keeps as many responses as it may, those that were used last.
func TestForwardAuthCacheIsBounded(t *testing.T) {
	asked := map[string]int{}
	auth := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked[r.URL.Path]++
		if w.Header().Set("X-User", "a"); r.URL.Path == "/long" {
			w.Header().Set("X-User", strings.Repeat("a", 9<<10))
		}
		w.WriteHeader(200)
	})
	f := good(t)(filters.ForwardAuth(filters.ForwardAuthOptions{To: auth, ResponseFields: []string{"X-User"}, CacheTime: time.Hour, CacheSize: 2,
		CacheKey: func(r *http.Request) string { return r.URL.Query().Get("key") }}))
	for _, target := range []string{"/a?key=1", "/b?key=2", "/a?key=1", "/c?key=3", "/a?key=1", "/b?key=2", // 2 has made room for 3, and 3 for it
		"/never?b", "/never?b", "/long?key=4", "/long?key=4", "/other?key=1"} {
		if resp, body := through(f, respond("ok"), httptest.NewRequest("GET", target, nil)); resp.StatusCode != 200 || body != "ok" {
			t.Errorf("%s: %d", target, resp.StatusCode)
		}
	}
	if want := map[string]int{"/a": 1, "/b": 2, "/c": 1, "/never": 2, "/long": 2}; !reflect.DeepEqual(asked, want) {
		t.Errorf("asked %v, want %v", asked, want)
	}
}

// Options that can't work, or that would let clients forge something, are refused.
func TestForwardAuthOptions(t *testing.T) {
	to := status(204)
	for want, o := range map[string]filters.ForwardAuthOptions{
		"no To": {},
		"a negative MaxBody, CacheTime or CacheSize": {To: to, CacheSize: -1},
		`invalid Method "A B"`:                       {To: to, Method: "A B"},
		`invalid Method "CONNECT"`:                   {To: to, Method: "CONNECT"},
		`invalid URI "http://a/"`:                    {To: to, URI: "http://a/"},
		`invalid URI "/a b"`:                         {To: to, URI: "/a b"},
		"field Content-Type describes content":       {To: to, RequestFields: []string{"content-type"}},
		"field X_forwarded_for is set by proxies":    {To: to, RequestFields: []string{"X_Forwarded_For"}},
		"field X-Forwarded-Method is set by proxies": {To: to, RequestFields: []string{"X-Forwarded-Method"}},
		"field X-Real-Ip is set by proxies":          {To: to, ResponseFields: []string{"X-Real-IP"}},
		"field connection is chosen by the server":   {To: to, ResponseFields: []string{"connection"}},
		`invalid field name ""`:                      {To: to, ResponseFields: []string{""}},
	} {
		bad(t, "filters: ForwardAuth: "+want)(filters.ForwardAuth(o))
	}
}
