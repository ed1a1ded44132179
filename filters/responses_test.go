package filters_test

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/cachectl"
	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
)

func TestHeaders(t *testing.T) {
	f := good(t)(filters.Headers(
		filters.HeaderRule{Status: cachectl.AddHeaderStatus, Set: http.Header{"x-plain": {"1"}}, Add: http.Header{"Vary": {"X"}}},
		filters.HeaderRule{Remove: []string{"x-powered-by"}, Set: http.Header{"X-Frame-Options": {"DENY"}}},
		filters.HeaderRule{Status: filters.StatusClass(4, 5), Set: http.Header{"X-Error": {"yes"}}},
		filters.HeaderRule{ContentTypes: []string{"text/*"}, Set: http.Header{"X-Text": {"yes"}}},
		filters.HeaderRule{ContentTypes: []string{"application/JSON"}, Set: http.Header{"X-Json": {"yes"}}},
	))
	for _, test := range []struct {
		status    int
		mediaType string
		want      string
	}{
		{200, "text/html; charset=utf-8", "X-Plain=1 Vary=A,X X-Frame-Options=DENY X-Error= X-Text=yes X-Json="},
		{200, "Application/json", "X-Plain=1 Vary=A,X X-Frame-Options=DENY X-Error= X-Text= X-Json=yes"},
		{200, "", "X-Plain=1 Vary=A,X X-Frame-Options=DENY X-Error= X-Text= X-Json="},
		{404, "text/plain", "X-Plain= Vary=A X-Frame-Options=DENY X-Error=yes X-Text=yes X-Json="},
		{500, "", "X-Plain= Vary=A X-Frame-Options=DENY X-Error=yes X-Text= X-Json="},
		{202, "text/plain", "X-Plain= Vary=A X-Frame-Options=DENY X-Error= X-Text=yes X-Json="},
	} {
		resp, _ := through(f, func(w http.ResponseWriter, _ *http.Request) {
			h := w.Header()
			h["Vary"], h["X-Powered-By"] = []string{"A"}, []string{"x"}
			if h["Content-Type"] = nil; test.mediaType != "" {
				h["Content-Type"] = []string{test.mediaType}
			}
			w.WriteHeader(test.status)
		}, get())
		var got []string
		for _, name := range []string{"X-Plain", "Vary", "X-Frame-Options", "X-Error", "X-Text", "X-Json"} {
			got = append(got, name+"="+strings.Join(resp.Header[name], ","))
		}
		if line := strings.Join(got, " "); line != test.want || resp.Header.Get("X-Powered-By") != "" {
			t.Errorf("%d %s: %s, want %s", test.status, test.mediaType, line, test.want)
		}
	}
	bad(t, `filters: Headers: invalid field name "a b"`)(filters.Headers(filters.HeaderRule{Set: http.Header{"a b": {"1"}}}))
	bad(t, `filters: Headers: invalid value "a\nb" of X`)(filters.Headers(filters.HeaderRule{Add: http.Header{"X": {"a\nb"}}}))
}

// TestHeadersOfARuleAreNotShared: an outer filter may change the values in place.
func TestHeadersOfARuleAreNotShared(t *testing.T) {
	headers := good(t)(filters.Headers(filters.HeaderRule{Set: http.Header{"X-A": {"1"}}, Add: http.Header{"X-B": {"2"}}}))
	edit := filters.OnResponse(filters.ResponseHooks{Header: func(_ *http.Request, _ int, h http.Header) {
		h["X-A"][0] += "!"
		h["X-B"][0] += "!"
	}})
	for range 2 {
		if resp, _ := through(filters.NewChain(edit, headers).Then, respond("ok"), get()); resp.Header.Get("X-A") != "1!" || resp.Header.Get("X-B") != "2!" {
			t.Errorf("sent %v", resp.Header)
		}
	}
}

// TestObserversShareARecord: each observer receives what the proxy has recorded.
func TestObserversShareARecord(t *testing.T) {
	outer, inner := &observed{}, &observed{}
	through(filters.NewChain(filters.Observe(outer), filters.Observe(inner)).Then, func(_ http.ResponseWriter, r *http.Request) {
		filters.ResultFrom(r.Context()).Upstream = "app"
	}, get())
	if outer.last.Result.Upstream != "app" || inner.last.Result.Upstream != "app" {
		t.Errorf("observed %+v and %+v", outer.last.Result, inner.last.Result)
	}
}

func TestRecover(t *testing.T) {
	leaktest.Check(t)
	log := make(lines, 4)
	f := filters.Recover(slog.New(slog.NewTextHandler(log, nil)))
	addr := wiretest.Serve(t, f(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "100")
		if r.URL.Path == "/later" {
			_, _ = io.WriteString(w, "half")
			_ = http.NewResponseController(w).Flush()
		}
		if r.URL.Path == "/abort" {
			panic(http.ErrAbortHandler)
		}
		panic(errors.New("boom"))
	})))
	client := wiretest.Dial(t, addr)
	client.Send("GET /?q HTTP/1.1\r\nHost: a\r\n\r\n")
	if resp, body := client.Response("GET"); resp.StatusCode != 500 || body != "Internal Server Error\n" {
		t.Errorf("response %s %q", resp.Status, body)
	}
	client.Send("GET /later HTTP/1.1\r\nHost: a\r\n\r\n") // the connection was kept
	if got := client.Ended(); !strings.HasSuffix(got, "\r\n\r\nhalf") {
		t.Errorf("got %q", got)
	}
	for _, uri := range []string{"/?q", "/later"} {
		if text := wiretest.Await(t, log, "log"); !strings.Contains(text, "panic=boom method=GET uri="+uri+" ") || !strings.Contains(text, "responses_test.go") {
			t.Errorf("logged %q", text)
		}
	}
	client = wiretest.Dial(t, addr)
	client.Send("GET /abort HTTP/1.1\r\nHost: a\r\n\r\n")
	if got := client.Ended(); got != "" || len(log) != 0 {
		t.Errorf("got %q, logged %d lines", got, len(log))
	}
}

func TestRequestID(t *testing.T) {
	var seen, inContext string
	handler := func(w http.ResponseWriter, r *http.Request) {
		seen, inContext = r.Header.Get("X-Request-Id"), filters.RequestIDFrom(r.Context())
		w.Header().Add("X-Request-Id", "the target's")
	}
	random := regexp.MustCompile(`^[A-Z2-7]{26}$`)
	for _, test := range []struct {
		trust bool
		sent  string
		kept  bool
	}{
		{false, "mine", false}, {true, "mine-1.2_3:4", true}, {true, "", false}, {true, "a b", false},
		{true, `a"b`, false}, {true, strings.Repeat("x", 128), true}, {true, strings.Repeat("x", 129), false},
	} {
		f := good(t)(filters.RequestID(filters.RequestIDOptions{Trust: test.trust}))
		resp, _ := through(f, handler, get("X-Request-Id", test.sent))
		if lines := resp.Header["X-Request-Id"]; len(lines) != 1 || lines[0] != seen || inContext != seen {
			t.Errorf("response %q, the handler saw %q and %q", lines, seen, inContext)
		}
		if test.kept != (seen == test.sent) || !test.kept && !random.MatchString(seen) {
			t.Errorf("%q became %q", test.sent, seen)
		}
	}
	f := good(t)(filters.RequestID(filters.RequestIDOptions{Field: "x-trace", New: func() string { return "42" }}))
	if resp, _ := through(f, handler, get()); resp.Header.Get("X-Trace") != "42" {
		t.Errorf("fields %v", resp.Header)
	}
	bad(t, `filters: RequestID: invalid field name "a b"`)(filters.RequestID(filters.RequestIDOptions{Field: "a b"}))
}

// A page replaces the content of an error, with the error's status.
func TestErrorPages(t *testing.T) {
	leaktest.Check(t)
	page := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != "GET" || r.Header.Get("Range") != "" || r.ContentLength != 0 {
			t.Errorf("the page was requested by %s %v", r.Method, r.Header)
		}
		w.Header().Set("Content-Type", "text/html")
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(200)
		_, _ = io.WriteString(w, "<h1>sorry</h1>")
	})
	f := filters.ErrorPages(func(status int) http.Handler {
		if status >= 500 {
			return page
		}
		return nil
	})
	addr := wiretest.Serve(t, f(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Type", "application/json")
		h.Set("Content-Length", "12")
		h.Set("Etag", `"x"`)
		h.Set("X-Kept", "yes")
		if r.URL.Path == "/bad" {
			w.WriteHeader(502)
		}
		_, _ = io.WriteString(w, "hello, world")
	})))
	client := wiretest.Dial(t, addr)
	client.Send("POST /bad HTTP/1.1\r\nHost: a\r\nRange: bytes=0-1\r\nContent-Length: 2\r\n\r\nhi")
	resp, body := client.Response("POST")
	if resp.StatusCode != 502 || body != "<h1>sorry</h1>" || resp.Header.Get("Content-Type") != "text/html" || resp.Header.Get("Cache-Control") != "no-store" ||
		resp.Header.Get("Etag") != "" || resp.Header.Get("X-Kept") != "yes" {
		t.Errorf("response %s %v %q", resp.Status, resp.Header, body)
	}
	client.Send("HEAD /bad HTTP/1.1\r\nHost: a\r\n\r\n")
	if resp, _ := client.Response("HEAD"); resp.StatusCode != 502 || resp.Header.Get("Content-Type") != "text/html" {
		t.Errorf("response %s %v", resp.Status, resp.Header)
	}
	client.Send("GET /good HTTP/1.1\r\nHost: a\r\n\r\n")
	if resp, body := client.Response("GET"); resp.StatusCode != 200 || body != "hello, world" || resp.Header.Get("Etag") != `"x"` {
		t.Errorf("response %s %v %q", resp.Status, resp.Header, body)
	}
}

type observed struct {
	started, ended int
	last           filters.Observation
}

func (o *observed) RequestStarted(*http.Request) { o.started++ }

func (o *observed) RequestEnded(_ *http.Request, last filters.Observation) {
	o.ended++
	o.last = last
}

func TestObserve(t *testing.T) {
	m := &observed{}
	through(filters.Observe(m), func(w http.ResponseWriter, r *http.Request) {
		if m.started != 1 || m.ended != 0 {
			t.Errorf("started %d, ended %d", m.started, m.ended)
		}
		if record := filters.ResultFrom(r.Context()); record == nil {
			t.Error("the context carries no Result")
		} else {
			record.Upstream = "app"
		}
		w.WriteHeader(404)
		_, _ = io.WriteString(w, "gone")
	}, get())
	if o := m.last; m.ended != 1 || o.Status != 404 || o.Bytes != 4 || o.Duration <= 0 || o.Result.Upstream != "app" || o.Aborted {
		t.Errorf("observed %+v", m.last)
	}
	func() {
		defer func() { _ = recover() }()
		filters.Observe(m)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("boom") })).ServeHTTP(httptest.NewRecorder(), get())
	}()
	if o := m.last; m.ended != 2 || o.Status != 500 || !o.Aborted {
		t.Errorf("observed %+v", m.last)
	}
}
