package ratelimitredis_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/culvert-go/culvert/examples/ratelimit-redis"
	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
)

// server starts a Redis or Valkey server on a free port of the loopback interface, and returns a client for it. Both end
// with the test.
func server(t testing.TB) (client *redis.Client, stop func()) {
	t.Helper()
	program := ""
	for _, name := range []string{"redis-server", "valkey-server"} {
		if path, err := exec.LookPath(name); err == nil {
			program = path
			break
		}
	}
	if program == "" {
		t.Fatal("this test needs redis-server or valkey-server (on Debian: apt-get install redis-server)")
	}
	addr := wiretest.Free(t)
	_, port, _ := strings.Cut(addr, ":")
	cmd := exec.Command(program, "--bind", "127.0.0.1", "--port", port, "--save", "", "--appendonly", "no", "--dir", t.TempDir())
	var log strings.Builder
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop = sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	t.Cleanup(stop)
	client = redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = client.Close() })
	for start := time.Now(); client.Ping(t.Context()).Err() != nil; time.Sleep(10 * time.Millisecond) {
		if time.Since(start) > time.Minute {
			stop()
			t.Fatalf("the server does not respond:\n%s", &log)
		}
	}
	return client, stop
}

func newStore(t testing.TB, client redis.Scripter, prefix string) *ratelimitredis.Store {
	t.Helper()
	store, err := ratelimitredis.New(client, prefix)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// gateway returns a handler with a limit in the store.
func gateway(t testing.TB, store filters.RateLimitStore, o filters.RateLimitOptions) http.Handler {
	t.Helper()
	o.Store, o.StoreTimeout = store, time.Minute
	f, err := filters.RateLimit(o)
	if err != nil {
		t.Fatal(err)
	}
	return f(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
}

func get(h http.Handler, remote string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	r := httptest.NewRequest("GET", "/", nil)
	r.RemoteAddr = remote
	h.ServeHTTP(w, r)
	return w
}

// Two gateways share the tokens of each client, however many requests are made at a time.
func TestGatewaysShareLimits(t *testing.T) {
	leaktest.Check(t)
	client, _ := server(t)
	o := filters.RateLimitOptions{Requests: 20, Per: 100 * time.Hour, Policy: "shared"}
	gateways := []http.Handler{gateway(t, newStore(t, client, "a:"), o), gateway(t, newStore(t, client, "a:"), o)}
	var served atomic.Int32
	var all sync.WaitGroup
	for i := range 60 {
		all.Go(func() {
			switch w := get(gateways[i%2], "192.0.2.1:1"); {
			case w.Code == http.StatusNoContent:
				served.Add(1)
			case w.Code != http.StatusTooManyRequests || w.Header().Get("RateLimit") != `"shared";r=0;t=`+w.Header().Get("Retry-After"):
				t.Errorf("status %d, %v", w.Code, w.Header())
			}
		})
	}
	all.Wait()
	if served.Load() != 20 {
		t.Errorf("%d requests were served, want 20", served.Load())
	}
	other := gateway(t, newStore(t, client, "b:"), o)
	for name, w := range map[string]*httptest.ResponseRecorder{"another client": get(gateways[0], "192.0.2.2:1"), "another prefix": get(other, "192.0.2.1:1")} {
		if got := w.Header().Get("RateLimit"); w.Code != http.StatusNoContent || got != `"shared";r=19;t=342000` {
			t.Errorf("%s: status %d, %s", name, w.Code, got)
		}
	}
}

// A state is that of the bucket after the call. A bucket gains tokens as time passes, and its key ends when it is full.
func TestState(t *testing.T) {
	leaktest.Check(t)
	client, _ := server(t)
	store := newStore(t, client, "state:")
	bucket := filters.RateLimitBucket{Burst: 3, Interval: time.Hour + 1} // rounded up to a microsecond
	for i, want := range []filters.RateLimitState{{OK: true, Tokens: 2}, {OK: true, Tokens: 1}, {OK: true}, {}, {}} {
		state, err := store.Take(t.Context(), "k\x00\xff", bucket)
		if err != nil {
			t.Fatal(err)
		}
		// The rest of the hour has begun to pass; half of it will do for a machine that stops.
		if state.OK != want.OK || state.Tokens != want.Tokens || state.Next > time.Hour+time.Microsecond || state.Next < 30*time.Minute {
			t.Errorf("call %d: %+v", i, state)
		}
	}
	if ttl := client.PTTL(t.Context(), "state:k\x00\xff").Val(); ttl < 2*time.Hour || ttl > 3*time.Hour+time.Millisecond {
		t.Errorf("the key ends in %v", ttl)
	}
	// What an hour would do: the time at which the bucket is full is an hour earlier.
	moved := client.Eval(t.Context(), `return redis.call('SET', KEYS[1], string.format('%.0f', redis.call('GET', KEYS[1]) - 3600000001))`, []string{"state:k\x00\xff"})
	if moved.Err() != nil {
		t.Fatal(moved.Err())
	}
	for i, want := range []bool{true, false} {
		if state, err := store.Take(t.Context(), "k\x00\xff", bucket); err != nil || state.OK != want {
			t.Errorf("call %d after an hour: %+v, %v", i, state, err)
		}
	}
	// The server's clock was set back by ten years.
	if err := client.Eval(t.Context(), `return redis.call('SET', KEYS[1], string.format('%.0f', redis.call('GET', KEYS[1]) + 3.15e14))`, []string{"state:k\x00\xff"}).Err(); err != nil {
		t.Fatal(err)
	}
	if state, err := store.Take(t.Context(), "k\x00\xff", bucket); err != nil || state.OK || state.Next != time.Hour+time.Microsecond {
		t.Errorf("after the clock was set back: %+v, %v", state, err)
	}
	if _, err := store.Take(t.Context(), "k", filters.RateLimitBucket{Burst: 1e9, Interval: time.Hour}); err == nil {
		t.Error("no error for a bucket that Lua could not count")
	}
}

// Without the server requests are refused, and the error says why. A script that the server has forgotten is sent again.
func TestServerForgetsAndEnds(t *testing.T) {
	leaktest.Check(t)
	client, stop := server(t)
	h := gateway(t, newStore(t, client, ""), filters.RateLimitOptions{Requests: 1000, Per: time.Hour})
	for range 2 {
		if w := get(h, "192.0.2.1:1"); w.Code != http.StatusNoContent {
			t.Errorf("status %d", w.Code)
		}
		if err := client.ScriptFlush(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	ctx, result := filters.WithResult(context.Background())
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil).WithContext(ctx))
	if w.Code != http.StatusServiceUnavailable || result.Err == nil || !strings.Contains(result.Err.Error(), "ratelimitredis: ") {
		t.Errorf("status %d, error %v", w.Code, result.Err)
	}
}

// A server that is silent takes no longer than the call's context.
func TestServerIsSilent(t *testing.T) {
	leaktest.Check(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close() // connections are accepted by the kernel
	client := redis.NewClient(&redis.Options{Addr: silent.Addr().String(), ReadTimeout: -1, WriteTimeout: -1, ContextTimeoutEnabled: true})
	defer client.Close()
	store := newStore(t, client, "")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := store.Take(ctx, "k", filters.RateLimitBucket{Burst: 1, Interval: time.Hour}); !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("error %v", err)
	}
}

// A client for which the context's end counts for nothing is refused.
func TestClientsThatWait(t *testing.T) {
	single, cluster := redis.NewClient(&redis.Options{}), redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}})
	ring := redis.NewRing(&redis.RingOptions{})
	defer ring.Close()
	defer cluster.Close()
	defer single.Close()
	for _, client := range []redis.Scripter{single, cluster, ring} {
		if _, err := ratelimitredis.New(client, ""); err == nil || !strings.Contains(err.Error(), "ContextTimeoutEnabled") {
			t.Errorf("%T: %v", client, err)
		}
	}
}
