package filters_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// A request that two servers could read differently is refused if its kind of ambiguity is
// selected. Nothing is rewritten (CVE-2022-2880, CVE-2026-39825, traefik#12437, #12564).
func TestRefuseAmbiguous(t *testing.T) {
	for target, want := range map[string]filters.Ambiguity{
		"/":                  0,
		"/a/b?c=d&e=f":       0,
		"/a.b/..c/...?x=%41": 0,
		"/a%20b/%C3%A9":      0,
		"/a%2Fb":             filters.EncodedSlash,
		"/a%2fb":             filters.EncodedSlash,
		"/a%5Cb":             filters.Backslash,
		"/a/../b":            filters.DotSegments,
		"/a/%2e%2E/b":        filters.DotSegments,
		"/a/..;x=1/b":        filters.DotSegments | filters.PathParameters,
		"/a/..%2Fb":          filters.DotSegments | filters.EncodedSlash,
		"/a/.%5Cb":           filters.DotSegments | filters.Backslash,
		"/a/.":               filters.DotSegments,
		"//a":                filters.EmptySegments,
		"/a//b":              filters.EmptySegments,
		"/a%00":              filters.ControlBytes,
		"/a%0d%0ab":          filters.ControlBytes,
		"/a;b=c":             filters.PathParameters,
		"/a?b=%zz":           filters.BadEscapes,
		"/a?b=%4":            filters.BadEscapes,
		"/a?b;c":             filters.Semicolons,
		"/a?b=1&b=2":         filters.RepeatedParameters,
		"/a?b=1&%62=2":       filters.RepeatedParameters,
		"/a?b=1&c=1&&":       0,
	} {
		for bit := filters.EncodedSlash; bit <= filters.UnderscoreNames; bit <<= 1 {
			r := httptest.NewRequest("GET", target, nil)
			resp, _ := through(filters.RefuseAmbiguous(bit), respond("ok"), r)
			if refused := resp.StatusCode == 400; refused != (want&bit != 0) {
				t.Errorf("%s by %b: status %d", target, bit, resp.StatusCode)
			}
		}
		resp, _ := through(filters.RefuseAmbiguous(0), respond("ok"), httptest.NewRequest("GET", target, nil))
		if resp.StatusCode != 200 {
			t.Errorf("%s is refused by nothing", target)
		}
	}
}

// CGI and WSGI read a name with an underscore as that of another field.
func TestUnderscoreNames(t *testing.T) {
	for name, want := range map[string]struct {
		filter culvert.Filter
		status int
		fields string
	}{
		"refused":               {filters.RefuseAmbiguous(filters.UnderscoreNames), 400, ""},
		"refused by all":        {filters.RefuseAmbiguous(filters.AnyAmbiguity), 400, ""},
		"not refused by others": {filters.RefuseAmbiguous(filters.AnyAmbiguity &^ filters.UnderscoreNames), 200, "X-User X_user"},
		"dropped":               {filters.DropUnderscoreNames(), 200, "X-User"},
	} {
		var got string
		resp, _ := through(want.filter, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			got = strings.Join(slices.Sorted(maps.Keys(r.Header)), " ")
		}), get("X-User", "u", "X_USER", "admin"))
		if resp.StatusCode != want.status || got != want.fields {
			t.Errorf("%s: status %d, fields %q", name, resp.StatusCode, got)
		}
	}
	for _, f := range []culvert.Filter{filters.RefuseAmbiguous(filters.AnyAmbiguity), filters.DropUnderscoreNames()} {
		if resp, body := through(f, respond("ok"), get("X-User", "u")); resp.StatusCode != 200 || body != "ok" {
			t.Errorf("without one: status %d", resp.StatusCode)
		}
	}
}

func TestBodyLimit(t *testing.T) {
	leaktest.Check(t)
	f := good(t)(filters.BodyLimit(4))
	target := wiretest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = w.Write(body)
	}))
	u, err := upstream.New(upstream.Options{}, upstream.Target{Addr: target})
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	p, err := proxy.New(proxy.Options{Upstream: u})
	if err != nil {
		t.Fatal(err)
	}
	addr := wiretest.Serve(t, f(p))
	for request, want := range map[string]string{
		"Content-Length: 4\r\n\r\nfour":                             "200 four",
		"Content-Length: 5\r\n\r\n":                                 "413 Request Entity Too Large\n",
		"Transfer-Encoding: chunked\r\n\r\n4\r\nfour\r\n0\r\n\r\n":  "200 four",
		"Transfer-Encoding: chunked\r\n\r\n5\r\nfive5\r\n0\r\n\r\n": "413 Request Entity Too Large\n",
		"Transfer-Encoding: chunked\r\n\r\nffffff\r\nand so on":     "413 Request Entity Too Large\n",
	} {
		client := wiretest.Dial(t, addr)
		client.Send("POST / HTTP/1.1\r\nHost: a\r\n" + request)
		resp, body := client.Response("POST")
		if got := resp.Status[:3] + " " + body; got != want {
			t.Errorf("%q: %q, want %q", request, got, want)
		}
		if resp.StatusCode == 413 {
			client.Ended()
		}
	}
	bad(t, "filters: BodyLimit is negative")(filters.BodyLimit(-1))
}

func TestConcurrency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := good(t)(filters.Concurrency(filters.ConcurrencyOptions{Max: 2, Queue: 1, QueueTimeout: 5 * time.Second, RetryAfter: 1500 * time.Millisecond}))
		release := make(chan struct{})
		h := f(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
		statuses := make(chan int, 8)
		serve := func(ctx context.Context) {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, get().WithContext(ctx))
			if w.Code == 503 && w.Header().Get("Retry-After") != "2" {
				t.Errorf("Retry-After %q", w.Header().Get("Retry-After"))
			}
			statuses <- w.Code
		}
		for range 3 {
			go serve(t.Context())
			synctest.Wait()
		}
		go serve(t.Context()) // neither runs nor waits
		if got := <-statuses; got != 503 {
			t.Errorf("status %d", got)
		}
		time.Sleep(5 * time.Second) // the timeout of the request in the queue
		if got := <-statuses; got != 503 {
			t.Errorf("status %d", got)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go serve(ctx)
		synctest.Wait()
		cancel() // the client of a request in the queue disconnects
		<-statuses
		go serve(t.Context())
		synctest.Wait()
		close(release)
		for range 3 {
			if got := <-statuses; got != 200 {
				t.Errorf("status %d", got)
			}
		}
	})
	bad(t, "filters: Concurrency needs a Max, and neither a negative Queue nor a negative RetryAfter")(filters.Concurrency(filters.ConcurrencyOptions{}))
}

// The time to the header is bounded, and the time of the body is not.
func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := good(t)(filters.Timeout(time.Second))
		resp, _ := through(f, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, get())
		if resp.StatusCode != 504 {
			t.Errorf("status %d", resp.StatusCode)
		}
		resp, _ = through(f, func(w http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			if context.Cause(r.Context()) != context.DeadlineExceeded {
				t.Errorf("cause %v", context.Cause(r.Context()))
			}
			w.WriteHeader(418)
		}, get())
		if resp.StatusCode != 418 {
			t.Errorf("the handler's response became %d", resp.StatusCode)
		}
		resp, body := through(f, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "begun, ")
			time.Sleep(time.Hour)
			if r.Context().Err() == nil {
				_, _ = io.WriteString(w, "ended")
			}
		}, get())
		if resp.StatusCode != 200 || body != "begun, ended" {
			t.Errorf("response %d %q", resp.StatusCode, body)
		}
	})
	bad(t, "filters: Timeout needs a time")(filters.Timeout(0))
}

// A proxy inside of Timeout responds with 504, and the failure names the target.
func TestTimeoutOfProxy(t *testing.T) {
	leaktest.Check(t)
	f := good(t)(filters.Timeout(50 * time.Millisecond))
	target := wiretest.Replying(t, "")
	u, err := upstream.New(upstream.Options{}, upstream.Target{Addr: target})
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	failed := make(chan *culvert.Error, 2)
	p, err := proxy.New(proxy.Options{Upstream: u, OnError: func(_ *http.Request, e *culvert.Error) { failed <- e }})
	if err != nil {
		t.Fatal(err)
	}
	for _, request := range []string{"", "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"} {
		client := wiretest.Dial(t, wiretest.Serve(t, f(p)))
		client.Send("GET / HTTP/1.1\r\nHost: a\r\n" + request + "\r\n")
		client.Status(504)
		if e := wiretest.Await(t, failed, "failure"); e.Kind != culvert.Timeout || e.Target != target {
			t.Errorf("failure %#v", e)
		}
	}
}

// copies records the requests that a mirror sends.
type copies struct {
	mu   sync.Mutex
	got  []string
	hold chan struct{} // if not nil, the handler waits until it is closed
}

func (c *copies) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	c.mu.Lock()
	c.got = append(c.got, r.Method+" "+r.URL.String()+" "+string(body))
	c.mu.Unlock()
	w.Header().Set("X-Discarded", "this")
	_, _ = io.WriteString(w, "and this")
	if err == nil && c.hold != nil {
		select {
		case <-c.hold:
		case <-r.Context().Done():
		}
	}
	panic(http.ErrAbortHandler)
}

func TestMirror(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := &copies{hold: make(chan struct{})}
		m, err := filters.NewMirror(filters.MirrorOptions{To: to, MaxBody: 5, MaxInFlight: 2, Timeout: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		echo := func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/unread" {
				return
			}
			_, _ = io.Copy(w, r.Body)
		}
		send := func(target, body string) {
			t.Helper()
			r := httptest.NewRequest("POST", target, strings.NewReader(body))
			if strings.HasSuffix(target, "chunked") {
				r.ContentLength = -1
			}
			resp, got := through(m.Filter, echo, r)
			if resp.Header.Get("X-Discarded") != "" || target != "/unread" && got != body {
				t.Errorf("response %v %q", resp.Header, got)
			}
			synctest.Wait()
		}
		send("/a?b", "hello")
		send("/none", "")
		if got := strings.Join(to.got, "; "); got != "POST /a?b hello; POST /none " {
			t.Errorf("copied %q", got)
		}
		send("/third", "x") // two are running
		if m.Dropped() != 1 || len(to.got) != 2 {
			t.Errorf("dropped %d, copied %q", m.Dropped(), to.got)
		}
		close(to.hold)
		synctest.Wait()
		send("/long", "longer")
		send("/long/chunked", "longer")
		send("/unread", "x")
		if m.Dropped() != 4 || len(to.got) != 2 {
			t.Errorf("dropped %d, copied %q", m.Dropped(), to.got)
		}
		send("/c/chunked", "again")
		if to.got[2] != "POST /c/chunked again" {
			t.Errorf("copied %q", to.got)
		}
		through(m.Filter, echo, get("Connection", "Upgrade", "Upgrade", "websocket"))
		synctest.Wait()
		if len(to.got) != 3 {
			t.Errorf("an upgrade was copied: %q", to.got)
		}
		if err := m.Close(t.Context()); err != nil {
			t.Error(err)
		}
		send("/closed", "")
		if m.Dropped() != 5 {
			t.Errorf("dropped %d", m.Dropped())
		}
	})
}

// A copy is cancelled at its timeout, and by Close when Close's context ends.
func TestMirrorEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, timeout := range []time.Duration{time.Second, time.Hour} {
			to := &copies{hold: make(chan struct{})}
			m, err := filters.NewMirror(filters.MirrorOptions{To: to, Timeout: timeout})
			if err != nil {
				t.Fatal(err)
			}
			through(m.Filter, respond("ok"), get())
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			start := time.Now()
			err = m.Close(ctx)
			cancel()
			if took := time.Since(start); took != min(timeout, time.Minute) || errors.Is(err, context.DeadlineExceeded) != (timeout > time.Minute) {
				t.Errorf("closed after %v: %v", took, err)
			}
		}
	})
}

// A copy has the client's Info of its original, and not its Result.
func TestMirrorContext(t *testing.T) {
	seen := make(chan string, 1)
	m, err := filters.NewMirror(filters.MirrorOptions{To: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		seen <- fmt.Sprint(filters.ClientAddr(r), " ", filters.ResultFrom(r.Context()))
	})})
	if err != nil {
		t.Fatal(err)
	}
	realIP := good(t)(filters.RealIP(filters.RealIPOptions{Trusted: trusting("192.0.2.0/24")}))
	chain := filters.NewChain(realIP, filters.AccessLog(slog.New(slog.DiscardHandler)), m.Filter)
	chain.Then(respond("ok")).ServeHTTP(httptest.NewRecorder(), get("X-Forwarded-For", "203.0.113.5"))
	if got := wiretest.Await(t, seen, "copy"); got != "203.0.113.5 <nil>" {
		t.Errorf("the copy had %s", got)
	}
	if err := m.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestMirrorShare(t *testing.T) {
	var n atomic.Int32
	m, err := filters.NewMirror(filters.MirrorOptions{To: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { n.Add(1) }), Share: 0.25, MaxInFlight: 10000})
	if err != nil {
		t.Fatal(err)
	}
	for range 4000 {
		through(m.Filter, respond("ok"), get())
	}
	if err := m.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if got := n.Load(); got < 850 || got > 1150 {
		t.Errorf("copied %d of 4000", got)
	}
	for _, o := range []filters.MirrorOptions{{}, {To: http.NotFoundHandler(), Share: 2}, {To: http.NotFoundHandler(), MaxBody: -1}} {
		if m, err := filters.NewMirror(o); m != nil || err == nil {
			t.Errorf("%+v was accepted", o)
		}
	}
}
