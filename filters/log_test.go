package filters_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// lines is a writer that sends each Write on a channel.
type lines chan string

func (l lines) Write(p []byte) (int, error) {
	l <- string(p)
	return len(p), nil
}

// The format is nginx's "combined", byte for byte.
func TestCombinedLog(t *testing.T) {
	leaktest.Check(t)
	log := make(lines, 8)
	addr := wiretest.Serve(t, filters.NewChain(filters.CombinedLog(log)).ThenFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/abort":
			panic(http.ErrAbortHandler)
		case "/missing":
			w.WriteHeader(404)
		default:
			_, _ = io.WriteString(w, "hello")
		}
	}))
	tests := []struct{ request, want string }{
		{"GET /a?b=%zz HTTP/1.1\r\nHost: a\r\nReferer: http://r.test/\r\nUser-Agent: me/1.0\r\nAuthorization: Basic YW5uOnNlY3JldA==\r\n\r\n",
			`127.0.0.1 - ann [TIME] "GET /a?b=%zz HTTP/1.1" 200 5 "http://r.test/" "me/1.0"` + "\n"},
		{"GET / HTTP/1.0\r\n\r\n",
			`127.0.0.1 - - [TIME] "GET / HTTP/1.0" 200 5 "-" "-"` + "\n"},
		{"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n",
			`127.0.0.1 - - [TIME] "HEAD / HTTP/1.1" 200 0 "-" "-"` + "\n"},
		{"GET /missing HTTP/1.1\r\nHost: a\r\nUser-Agent: a\"b\\c\x01\xc3\xa9\r\n\r\n",
			`127.0.0.1 - - [TIME] "GET /missing HTTP/1.1" 404 0 "-" "a\x22b\x5Cc\x01\xC3\xA9"` + "\n"},
		{"GET /\"quoted\\ HTTP/1.1\r\nHost: a\r\n\r\n",
			`127.0.0.1 - - [TIME] "GET /\x22quoted\x5C HTTP/1.1" 200 5 "-" "-"` + "\n"},
		{"GET /abort HTTP/1.1\r\nHost: a\r\n\r\n",
			`127.0.0.1 - - [TIME] "GET /abort HTTP/1.1" 500 0 "-" "-"` + "\n"},
	}
	moment := regexp.MustCompile(`\[\d\d/[A-Z][a-z][a-z]/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}\]`)
	for _, test := range tests {
		client := wiretest.Dial(t, addr)
		client.Send(strings.Replace(test.request, "\x01", "\t", 1))
		client.End()
		client.Ended()
		want := strings.Replace(test.want, `\x01`, `\x09`, 1)
		if got := moment.ReplaceAllString(wiretest.Await(t, log, "line"), "[TIME]"); got != want {
			t.Errorf("logged %q, want %q", got, want)
		}
	}
}

// A full disk must not stop the traffic.
func TestCombinedLogWriterFails(t *testing.T) {
	r, w := io.Pipe()
	r.Close()
	rec := httptest.NewRecorder()
	filters.CombinedLog(w)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) })).
		ServeHTTP(rec, httptest.NewRequest("GET", "/", nil))
	if rec.Code != 204 {
		t.Errorf("status %d", rec.Code)
	}
}

// Lines of requests that end at the same time are not mixed: each is one Write,
// and no Write begins before the previous one has ended.
func TestCombinedLogConcurrent(t *testing.T) {
	var log bytes.Buffer // without a lock, so that the race detector finds concurrent Writes
	h := filters.CombinedLog(&log)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }))
	var clients sync.WaitGroup
	for range 20 {
		clients.Go(func() { h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)) })
	}
	clients.Wait()
	if n := strings.Count(log.String(), "\" 204 0 \"-\" \"-\"\n"); n != 20 {
		t.Errorf("%d lines in %q", n, log.String())
	}
}

// records returns a logger and the lines that it writes.
func records() (*slog.Logger, lines) {
	out := make(lines, 8)
	return slog.New(slog.NewJSONHandler(out, nil)), out
}

// record decodes a line and checks that it has exactly the attributes of every request and attrs.
func record(t *testing.T, line string, attrs ...string) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(line), &m); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	attrs = append(attrs, "time", "level", "msg", "client", "method", "host", "uri", "proto", "status", "bytes", "duration")
	slices.Sort(attrs)
	if got := slices.Sorted(maps.Keys(m)); !slices.Equal(got, attrs) {
		t.Errorf("attributes %q, want %q", got, attrs)
	}
	return m
}

func newProxy(t *testing.T, addrs ...string) *proxy.Proxy {
	t.Helper()
	var targets []upstream.Target
	for _, addr := range addrs {
		targets = append(targets, upstream.Target{Addr: addr})
	}
	u, err := upstream.New(upstream.Options{Name: "app"}, targets...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { u.Close() })
	p, err := proxy.New(proxy.Options{Upstream: u})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestAccessLog(t *testing.T) {
	leaktest.Check(t)
	logger, log := records()
	dead := wiretest.Unused(t)
	app := wiretest.Replying(t, "HTTP/1.1 201 Created\r\nContent-Length: 5\r\n\r\nhello")
	client := wiretest.Dial(t, wiretest.Serve(t, filters.AccessLog(logger)(newProxy(t, dead, app))))
	client.Send("PUT /a%2Fb?q HTTP/1.1\r\nHost: shop.test\r\n\r\n")
	client.Status(201)
	m := record(t, wiretest.Await(t, log, "record"), "upstream", "targets", "target_statuses", "header")
	for name, want := range map[string]any{"level": "INFO", "msg": "request", "client": "127.0.0.1", "method": "PUT", "host": "shop.test", "uri": "/a%2Fb?q",
		"proto": "HTTP/1.1", "status": 201.0, "bytes": 5.0, "upstream": "app", "targets": dead + ", " + app, "target_statuses": "0, 201"} {
		if m[name] != want {
			t.Errorf("%s: %v, want %v", name, m[name], want)
		}
	}
}

func TestAccessLogOfFailures(t *testing.T) {
	leaktest.Check(t)
	logger, log := records()
	dead := wiretest.Unused(t)
	client := wiretest.Dial(t, wiretest.Serve(t, filters.AccessLog(logger)(newProxy(t, dead))))
	client.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	client.Status(502)
	m := record(t, wiretest.Await(t, log, "record"), "upstream", "targets", "target_statuses", "header", "error")
	if m["status"] != 502.0 || !strings.HasPrefix(m["error"].(string), "dial failed: "+dead+": ") {
		t.Errorf("logged %v", m)
	}
}

// A client that disconnects is logged as 499, before a response and within one
// (golang/go#20071, caddy#2547).
func TestAccessLogOfGoneClient(t *testing.T) {
	leaktest.Check(t)
	for name, reply := range map[string]string{"before the header": "", "in the body": "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"} {
		t.Run(name, func(t *testing.T) {
			logger, log := records()
			arrived := make(chan struct{})
			app := wiretest.Target(t, func(p *wiretest.Peer) {
				p.Header()
				p.Send(reply)
				close(arrived)
				p.Ended()
			})
			client := wiretest.Dial(t, wiretest.Serve(t, filters.AccessLog(logger)(newProxy(t, app))))
			client.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
			wiretest.Await(t, arrived, "request")
			if reply != "" {
				client.Header()
			}
			client.Close()
			m := record(t, wiretest.Await(t, log, "record"), "upstream", "targets", "target_statuses", "header", "error")
			if m["status"] != 499.0 || !strings.HasPrefix(m["error"].(string), "client gone") {
				t.Errorf("logged %v", m)
			}
		})
	}
}

func TestAccessLogOfTunnel(t *testing.T) {
	leaktest.Check(t)
	logger, log := records()
	app := wiretest.Target(t, func(p *wiretest.Peer) {
		p.Header()
		p.Send("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\nhello")
		p.Rest()
	})
	client := wiretest.Dial(t, wiretest.Serve(t, filters.AccessLog(logger)(newProxy(t, app))))
	client.Send("GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\nok")
	client.Header()
	client.Receive("hello")
	client.End()
	client.Rest()
	m := record(t, wiretest.Await(t, log, "record"), "upstream", "targets", "target_statuses", "header", "in_bytes", "out_bytes")
	if m["status"] != 101.0 || m["in_bytes"] != 2.0 || m["out_bytes"] != 5.0 || m["bytes"] != 0.0 || m["targets"] != app {
		t.Errorf("logged %v", m)
	}
}

// A filter around the proxy receives the Result of its exchange.
func TestResult(t *testing.T) {
	leaktest.Check(t)
	app := wiretest.Replying(t, "HTTP/1.1 204 No Content\r\n\r\n")
	p := newProxy(t, app)
	results := make(chan *culvert.Result, 1)
	client := wiretest.Dial(t, wiretest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if filters.ResultFrom(r.Context()) != nil {
			t.Error("a Result before WithResult")
		}
		ctx, record := filters.WithResult(r.Context())
		p.ServeHTTP(w, r.WithContext(ctx))
		results <- record
	})))
	client.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	client.Status(204)
	r := wiretest.Await(t, results, "record")
	if r.Upstream != "app" || len(r.Attempts) != 1 || r.Err != nil {
		t.Fatalf("record %+v", r)
	}
	if try := r.Attempts[0]; try.Target != app || try.Status != 204 || try.TimeToHeader <= 0 || try.Total < try.TimeToHeader || try.Err != nil {
		t.Errorf("try %+v", try)
	}
}

func BenchmarkLogs(b *testing.B) {
	next := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) })
	for name, filter := range map[string]culvert.Filter{
		"AccessLog":   filters.AccessLog(slog.New(slog.NewTextHandler(io.Discard, nil))),
		"CombinedLog": filters.CombinedLog(io.Discard),
		"Chain":       filters.NewChain().Then,
	} {
		b.Run(name, func(b *testing.B) {
			h, w, r := filter(next), httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)
			b.ReportAllocs()
			for b.Loop() {
				h.ServeHTTP(w, r)
			}
		})
	}
}

// The log has the id of a RequestID outside of it.
func TestAccessLogID(t *testing.T) {
	log := make(lines, 1)
	id := good(t)(filters.RequestID(filters.RequestIDOptions{New: func() string { return "42" }}))
	chain := filters.NewChain(id, filters.AccessLog(slog.New(slog.NewJSONHandler(log, nil))))
	chain.Then(respond("ok")).ServeHTTP(httptest.NewRecorder(), get())
	if line := <-log; !strings.Contains(line, `"id":"42"`) {
		t.Errorf("logged %q", line)
	}
}

// A logger whose level is above Info logs nothing.
func TestAccessLogOfOtherLevels(t *testing.T) {
	log := make(lines, 1)
	f := filters.AccessLog(slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn})))
	through(f, respond("ok"), get())
	if len(log) != 0 {
		t.Errorf("logged %q", <-log)
	}
}

// TestAccessLogAttributes: attributes of the program's own are written behind the others, and the kind of a failure by its
// name, in JSON as well.
func TestAccessLogAttributes(t *testing.T) {
	var out bytes.Buffer
	own := func(r *http.Request, o filters.Observation) []slog.Attr {
		attrs := []slog.Attr{slog.String("user_agent", r.UserAgent())}
		if e, ok := errors.AsType[*culvert.Error](o.Result.Err); ok {
			attrs = append(attrs, slog.Any("kind", e.Kind))
		}
		return attrs
	}
	h := filters.AccessLog(slog.New(slog.NewJSONHandler(&out, nil)), nil, own)(newProxy(t, wiretest.Unused(t)))
	r := httptest.NewRequest("GET", "http://gateway.test/", nil)
	r.Header.Set("User-Agent", "curl \"8\"")
	h.ServeHTTP(httptest.NewRecorder(), r)
	var line struct {
		Status    int    `json:"status"`
		UserAgent string `json:"user_agent"`
		Kind      string `json:"kind"`
	}
	if err := json.Unmarshal(out.Bytes(), &line); err != nil || line.Status != 502 || line.UserAgent != "curl \"8\"" || line.Kind != "dial failed" {
		t.Errorf("%+v, %v of %s", line, err, &out)
	}
}

// The user agent and the kind of a failure in each line.
func ExampleAccessLog() {
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == "user_agent" {
			return a
		}
		return slog.Attr{} // the others differ from run to run
	}}))
	agent := func(r *http.Request, _ filters.Observation) []slog.Attr {
		return []slog.Attr{slog.String("user_agent", r.UserAgent())}
	}
	h := filters.AccessLog(logger, agent)(http.NotFoundHandler())
	r := httptest.NewRequest("GET", "/", nil)
	r.Header.Set("User-Agent", "curl/8.9")
	h.ServeHTTP(httptest.NewRecorder(), r)
	// Output: user_agent=curl/8.9
}
