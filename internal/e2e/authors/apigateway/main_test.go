package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/jwtauth/v5"

	"github.com/culvert-go/culvert/internal/e2e/authors/peers"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
)

func TestMain(m *testing.M) { os.Exit(leaktest.Run(m)) }

const secret = "0123456789abcdef0123456789abcdef"

// environment is what gateways need: two servers of orders, of which the first breaks off, a catalog, the authorization
// service and Redis.
type environment struct {
	args      []string
	tls       *tls.Config
	stopRedis func()
	received  chan *http.Request // by the second server of orders
}

func newEnvironment(t *testing.T) *environment {
	e := &environment{received: make(chan *http.Request, 100)}
	broken := wiretest.Target(t, func(p *wiretest.Peer) {
		p.Header()
		p.Reset()
	})
	orders := peers.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		e.received <- r
		fmt.Fprintf(w, "%s %s of %s (%s), %d bytes", r.Method, r.RequestURI, r.Header.Get("X-User"), r.Header.Get("X-Plan"), len(body))
	}))
	catalog := peers.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "catalog "+r.RequestURI) }))
	authorize := peers.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path != "/decide" || !strings.HasPrefix(r.Header.Get("Authorization"), "Bearer "):
			w.WriteHeader(http.StatusInternalServerError)
		case r.Header.Get("X-Forwarded-Method") == "DELETE":
			http.Error(w, "only admins delete orders", http.StatusForbidden)
		default:
			w.Header().Set("X-Plan", "gold, sees "+r.Header.Get("X-Forwarded-Uri"))
		}
	}))
	url, stopRedis := peers.Redis(t)
	e.stopRedis = stopRedis
	cert, key, pool := peers.Certificate(t, "api.test")
	e.tls = &tls.Config{RootCAs: pool, ServerName: "api.test"}
	e.args = []string{"-listen", "127.0.0.1:0", "-cert", cert, "-key", key, "-redis", url, "-origins", "https://app.test",
		"-orders", "http://" + broken + "," + orders.URL, "-catalog", catalog.URL, "-authorize", authorize.URL}
	return e
}

// program is a gateway of the environment, with a client that speaks HTTP/2.
type program struct {
	client *http.Client
	logs   chan map[string]any
}

func (p *program) Write(line []byte) (int, error) {
	record := map[string]any{}
	err := json.Unmarshal(line, &record)
	p.logs <- record
	return len(line), err
}

func (e *environment) start(t *testing.T, args ...string) *program {
	p := &program{logs: make(chan map[string]any, 1000)}
	getenv := func(name string) string { return map[string]string{"JWT_SECRET": secret}[name] }
	addr, _ := peers.Program(t, func(ctx context.Context, ready func(net.Addr)) error {
		return run(ctx, append(e.args, args...), getenv, p, ready)
	})
	transport := &http.Transport{TLSClientConfig: e.tls, ForceAttemptHTTP2: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", addr)
	}}
	t.Cleanup(transport.CloseIdleConnections)
	p.client = &http.Client{Transport: transport}
	return p
}

// request sends a request with further header fields, as names and values in turn.
func (p *program) request(t *testing.T, method, path, body string, fields ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "https://api.test"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(fields); i += 2 {
		r.Header.Set(fields[i], fields[i+1])
	}
	response, err := p.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(content)
}

// record returns the log's record of the last request.
func (p *program) record(t *testing.T) map[string]any {
	t.Helper()
	for {
		if r := wiretest.Await(t, p.logs, "the record of a request"); r["msg"] == "request" {
			return r
		}
	}
}

func token(t *testing.T, claims map[string]any) string {
	t.Helper()
	_, signed, err := jwtauth.New("HS256", []byte(secret), nil).Encode(claims)
	if err != nil {
		t.Fatal(err)
	}
	return "Bearer " + signed
}

func status(t *testing.T, what string, response *http.Response, want int) {
	t.Helper()
	if response.StatusCode != want {
		t.Errorf("%s: status %d, want %d", what, response.StatusCode, want)
	}
}

func TestOrders(t *testing.T) {
	e := newEnvironment(t)
	p := e.start(t, "-max-body", "1000")
	ann := token(t, map[string]any{"sub": "ann"})

	// The first server breaks off: a GET is repeated on the second one.
	response, body := p.request(t, "GET", "/orders/7?full=1", "", "Authorization", ann, "X-Plan", "forged", "X-User", "forged", "User-Agent", "tester/1")
	if want := "GET /7?full=1 of ann (gold, sees /orders/7?full=1), 0 bytes"; response.ProtoMajor != 2 || body != want {
		t.Errorf("%s: %q, want %q", response.Proto, body, want)
	}
	if got := wiretest.Await(t, e.received, "the order"); got.Header.Get("Authorization") != "" {
		t.Errorf("the target has the token")
	}
	record := p.record(t)
	for name, want := range map[string]any{"route": "/orders/*", "attempts": 2.0, "agent": "tester/1", "user": "ann", "upstream": "orders",
		"status": 200.0, "id": response.Header.Get("X-Request-Id")} {
		if record[name] != want {
			t.Errorf("the log has %s=%v, want %v", name, record[name], want)
		}
	}
	for name, c := range map[string]struct {
		method, path, body string
		fields             []string
		status             int
	}{
		"an order":             {"POST", "/orders", "{}", []string{"Authorization", ann}, 200},
		"no token":             {"GET", "/orders/7", "", nil, 401},
		"another signature":    {"GET", "/orders/7", "", []string{"Authorization", ann + "x"}, 401},
		"a token in the query": {"GET", "/orders/7?jwt=" + strings.TrimPrefix(ann, "Bearer "), "", nil, 401},
		"an old token":         {"GET", "/orders/7", "", []string{"Authorization", token(t, map[string]any{"sub": "ann", "exp": time.Now().Add(-time.Hour)})}, 401},
		"a token of no user":   {"GET", "/orders/7", "", []string{"Authorization", token(t, map[string]any{})}, 401},
		"forbidden":            {"DELETE", "/orders/7", "", []string{"Authorization", ann}, 403},
		"too large":            {"POST", "/orders", strings.Repeat("x", 1001), []string{"Authorization", ann}, 413},
		"no such route":        {"GET", "/other", "", nil, 404},
		"the catalog":          {"GET", "/catalog/a%2Fb", "", nil, 200},
	} {
		response, body := p.request(t, c.method, c.path, c.body, c.fields...)
		status(t, name, response, c.status)
		if c.status == 403 && !strings.Contains(body, "only admins") {
			t.Errorf("%s: %q", name, body)
		}
		if name == "the catalog" && body != "catalog /catalog/a%2Fb" {
			t.Errorf("%s: %q", name, body)
		}
	}
}

// An order with a key is sent to the second server when the first breaks off.
func TestOrderIsRepeated(t *testing.T) {
	e := newEnvironment(t)
	p := e.start(t)
	response, _ := p.request(t, "POST", "/orders", "{}", "Authorization", token(t, map[string]any{"sub": "ann"}), "Idempotency-Key", "1")
	status(t, "a POST with a key", response, 200)
	if record := p.record(t); record["attempts"] != 2.0 {
		t.Errorf("%v attempts, want 2", record["attempts"])
	}
}

// One without a key is never sent twice.
func TestOrderIsNotRepeated(t *testing.T) {
	e := newEnvironment(t)
	p := e.start(t)
	response, _ := p.request(t, "POST", "/orders", "{}", "Authorization", token(t, map[string]any{"sub": "ann"}))
	status(t, "a POST to a server that breaks off", response, 502)
	if record := p.record(t); record["attempts"] != 1.0 {
		t.Errorf("%v attempts, want 1", record["attempts"])
	}
	if len(e.received) != 0 {
		t.Error("the second server has the order, too")
	}
}

// Two gateways share the rate of a user. Without Redis no request passes.
func TestRates(t *testing.T) {
	e := newEnvironment(t)
	first, second := e.start(t, "-rate", "3"), e.start(t, "-rate", "3")
	ann, bob := token(t, map[string]any{"sub": "ann"}), token(t, map[string]any{"sub": "bob"})
	for i, p := range []*program{first, second, first} {
		response, _ := p.request(t, "GET", "/orders/1", "", "Authorization", ann)
		status(t, fmt.Sprint("request ", i), response, 200)
		if limit := response.Header.Get("RateLimit"); !strings.HasPrefix(limit, fmt.Sprintf(`"user";r=%d;`, 2-i)) {
			t.Errorf("request %d: RateLimit %q", i, limit)
		}
	}
	for _, p := range []*program{first, second} {
		response, _ := p.request(t, "GET", "/orders/1", "", "Authorization", ann, "Origin", "https://app.test")
		status(t, "the fourth request", response, 429)
		if response.Header.Get("Retry-After") == "" || response.Header.Get("Access-Control-Allow-Origin") != "https://app.test" {
			t.Errorf("a page can't read the limit: %v", response.Header)
		}
	}
	response, _ := second.request(t, "GET", "/orders/1", "", "Authorization", bob)
	status(t, "another user", response, 200)
	response, _ = first.request(t, "GET", "/catalog/1", "")
	status(t, "the catalog", response, 200)

	e.stopRedis()
	response, _ = first.request(t, "GET", "/orders/1", "", "Authorization", bob)
	status(t, "without Redis", response, 503)
}

func TestCORS(t *testing.T) {
	e := newEnvironment(t)
	p := e.start(t)
	preflight := []string{"Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "authorization,content-type", "Origin"}
	response, _ := p.request(t, "OPTIONS", "/orders", "", append(preflight, "https://app.test")...)
	if h := response.Header; response.StatusCode != 204 || h.Get("Access-Control-Allow-Origin") != "https://app.test" || h.Get("Access-Control-Allow-Methods") != "POST" {
		t.Errorf("a preflight: %d, %v", response.StatusCode, h)
	}
	if response, _ = p.request(t, "OPTIONS", "/orders", "", append(preflight, "https://evil.test")...); response.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("a preflight of another site: %v", response.Header)
	}
	response, _ = p.request(t, "GET", "/orders/1", "", "Origin", "https://app.test")
	status(t, "no token", response, 401)
	if response.Header.Get("Access-Control-Allow-Origin") != "https://app.test" {
		t.Errorf("a page can't read the 401: %v", response.Header)
	}
}

func TestConfiguration(t *testing.T) {
	cert, key, _ := peers.Certificate(t, "api.test")
	good := []string{"-listen", "127.0.0.1:0", "-cert", cert, "-key", key, "-orders", "http://127.0.0.1:1", "-catalog", "http://127.0.0.1:1", "-authorize", "http://127.0.0.1:1"}
	for name, c := range map[string]struct {
		want, secret string
		args         []string
	}{
		"a short secret":    {"JWT_SECRET", "short", nil},
		"no target":         {"-orders", secret, []string{"-orders", ""}},
		"no URL":            {"-authorize", secret, []string{"-authorize", "ftp://x"}},
		"another database":  {"-redis", secret, []string{"-redis", "mysql://x"}},
		"no rate":           {"Requests", secret, []string{"-rate", "0"}},
		"a negative length": {"BodyLimit", secret, []string{"-max-body", "-1"}},
		"no certificate":    {"no such file", secret, []string{"-cert", "missing.pem"}},
	} {
		getenv := func(string) string { return c.secret }
		err := run(t.Context(), append(good, c.args...), getenv, io.Discard, func(net.Addr) {})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want an error with %q", name, err, c.want)
		}
	}
}
