package proxy_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// timed are targets by address, each of which responds after a time of its own, or fails then.
type timed struct {
	after map[string]time.Duration // negative: it fails after that time
	mu    sync.Mutex
	saw   []string // requests
	ended []string // connections that the gateway has closed before a response
}

func (p *timed) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	return pipeTo(func(c net.Conn) {
		r, err := http.ReadRequest(bufio.NewReader(c))
		if err != nil {
			return
		}
		_, _ = io.ReadAll(r.Body)
		p.mu.Lock()
		p.saw = append(p.saw, fmt.Sprint(addr, " ", r.Method, " ", r.Header.Get("Attempt")))
		p.mu.Unlock()
		after := p.after[addr]
		_ = c.SetReadDeadline(time.Now().Add(max(after, -after)))
		if _, err := c.Read(make([]byte, 1)); err == io.EOF {
			p.mu.Lock()
			p.ended = append(p.ended, addr)
			p.mu.Unlock()
			return
		}
		if after > 0 {
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", len(addr), addr)
		}
	})(ctx, network, addr)
}

// TestHedge: a safe request without a body is sent to a second target when the first has not responded in time. The first
// response counts, and the other attempt is ended without a failure.
func TestHedge(t *testing.T) { onPaths(t, testHedge) }

func testHedge(t *testing.T, via path) {
	const a, b, second = "192.0.2.1:80", "192.0.2.2:80", time.Second
	nothing, err := proxy.NewRetryBudget(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	overtaken := "another target has responded before"
	for name, test := range map[string]struct {
		a, b     time.Duration
		method   string
		body     string
		retry    proxy.Retry
		status   int
		from     string
		took     time.Duration
		attempts []string // with how they have ended
		ended    string   // by the gateway
		fails    string
	}{
		"fast":          {second / 2, second / 2, "GET", "", proxy.Retry{}, 200, a, second / 2, []string{a + " <nil>"}, "[]", "0 0"},
		"second":        {9 * second, 2 * second, "GET", "", proxy.Retry{}, 200, b, 3 * second, []string{a + " " + overtaken, b + " <nil>"}, "[" + a + "]", "0 0"},
		"first":         {2 * second, 9 * second, "GET", "", proxy.Retry{}, 200, a, 2 * second, []string{b + " " + overtaken, a + " <nil>"}, "[" + b + "]", "0 0"},
		"first fails":   {-2 * second, 9 * second, "GET", "", proxy.Retry{}, 200, b, 10 * second, []string{a + " fails", b + " <nil>"}, "[]", "1 0"},
		"second fails":  {9 * second, -2 * second, "GET", "", proxy.Retry{}, 200, a, 9 * second, []string{b + " fails", a + " <nil>"}, "[]", "0 1"},
		"both fail":     {-9 * second, -2 * second, "GET", "", proxy.Retry{}, 502, "", 9 * second, []string{b + " fails", a + " fails"}, "[]", "1 1"},
		"HEAD":          {9 * second, 2 * second, "HEAD", "", proxy.Retry{}, 200, "", 3 * second, []string{a + " " + overtaken, b + " <nil>"}, "[" + a + "]", "0 0"},
		"POST":          {3 * second, second, "POST", "", proxy.Retry{}, 200, a, 3 * second, []string{a + " <nil>"}, "[]", "0 0"},
		"PUT":           {3 * second, second, "PUT", "", proxy.Retry{}, 200, a, 3 * second, []string{a + " <nil>"}, "[]", "0 0"},
		"GET, body":     {3 * second, second, "GET", "body", proxy.Retry{}, 200, a, 3 * second, []string{a + " <nil>"}, "[]", "0 0"},
		"Tries":         {3 * second, second, "GET", "", proxy.Retry{Tries: 1}, 200, a, 3 * second, []string{a + " <nil>"}, "[]", "0 0"},
		"Timeout":       {3 * second, second, "GET", "", proxy.Retry{Timeout: second / 2}, 200, a, 3 * second, []string{a + " <nil>"}, "[]", "0 0"},
		"Budget":        {3 * second, second, "GET", "", proxy.Retry{Budget: nothing}, 200, a, 3 * second, []string{a + " <nil>"}, "[]", "0 0"},
		"a third, none": {-2 * second, -2 * second, "GET", "", proxy.Retry{Errors: true}, 502, "", 3 * second, []string{a + " fails", b + " fails"}, "[]", "1 1"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				leaktest.Check(t)
				targets := &timed{after: map[string]time.Duration{a: test.a, b: test.b}}
				group := groupOf(t, upstream.Options{DialContext: targets.dial, MaxEjected: 1}, upstream.Target{Addr: a, MaxFails: 3}, upstream.Target{Addr: b, MaxFails: 3})
				test.retry.Hedge = second
				var ended []string
				p := newProxy(t, via, proxy.Options{Upstream: group, Retry: test.retry, OnAttempt: func(out *http.Request, target string) func(culvert.Attempt) {
					out.Header.Set("Attempt", target)
					if want := "http://" + target + "/"; out.URL.String() != want {
						t.Errorf("an attempt at %s, want %s", out.URL, want)
					}
					return func(a culvert.Attempt) { ended = append(ended, target+" "+how(a.Err)) }
				}})
				ctx, record := filters.WithNewResult(t.Context())
				start, w := time.Now(), httptest.NewRecorder()
				r := httptest.NewRequest(test.method, "http://gateway.test/", strings.NewReader(test.body))
				if test.body == "" {
					r.Body, r.ContentLength = http.NoBody, 0
				}
				p.ServeHTTP(w, r.WithContext(ctx))
				if from := w.Body.String(); w.Code != test.status || w.Code == 200 && from != test.from || time.Since(start) != test.took {
					t.Errorf("%d from %q after %v", w.Code, from, time.Since(start))
				}
				var attempts []string
				for _, a := range record.Attempts {
					if most := time.Duration(0); a.Err != nil && how(a.Err) == "fails" {
						if most = max(test.a, -test.a); a.Target == b {
							most = max(test.b, -test.b)
						}
						if a.Total != most {
							t.Errorf("%s took %v, want %v", a.Target, a.Total, most)
						}
					}
					attempts = append(attempts, a.Target+" "+how(a.Err))
				}
				if got, want := fmt.Sprint(attempts), fmt.Sprint(test.attempts); got != want || fmt.Sprint(ended) != want {
					t.Errorf("attempts %s, ended %q, want %s", got, ended, want)
				}
				synctest.Wait()
				targets.mu.Lock()
				defer targets.mu.Unlock()
				if got := fmt.Sprint(targets.ended); got != test.ended {
					t.Errorf("ended by the gateway: %s, want %s", got, test.ended)
				}
				if len(targets.saw) != len(test.attempts) {
					t.Errorf("the targets saw %q", targets.saw)
				}
				for _, line := range targets.saw {
					if f := strings.Fields(line); len(f) != 3 || f[0] != f[2] {
						t.Errorf("a target saw %q", line)
					}
				}
				var fails []string
				for s := range group.Targets() {
					fails = append(fails, fmt.Sprint(s.Fails))
					if s.InFlight != 0 {
						t.Errorf("%+v", s)
					}
				}
				if got := strings.Join(fails, " "); got != test.fails {
					t.Errorf("failures %s, want %s", got, test.fails)
				}
				group.Close()
			})
		})
	}
}

// how returns how an attempt has ended.
func how(err error) string {
	if e := (*culvert.Error)(nil); errors.As(err, &e) {
		return "fails"
	}
	return fmt.Sprint(err)
}

// TestHedgeLeft: when its client leaves, both attempts of a request end, and blame no target.
func TestHedgeLeft(t *testing.T) { onPaths(t, testHedgeLeft) }

func testHedgeLeft(t *testing.T, via path) {
	synctest.Test(t, func(t *testing.T) {
		leaktest.Check(t)
		targets := &timed{after: map[string]time.Duration{"192.0.2.1:80": time.Hour, "192.0.2.2:80": time.Hour}}
		group := groupAt(t, upstream.Options{DialContext: targets.dial}, "192.0.2.1:80", "192.0.2.2:80")
		p := newProxy(t, via, proxy.Options{Upstream: group, Retry: proxy.Retry{Hedge: time.Second}})
		ctx, cancel := context.WithTimeoutCause(t.Context(), 5*time.Second, context.Canceled)
		defer cancel()
		func() {
			defer func() { _ = recover() }() // http.ErrAbortHandler
			p.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "http://gateway.test/", nil).WithContext(ctx))
		}()
		synctest.Wait()
		if len(targets.ended) != 2 {
			t.Errorf("ended: %q", targets.ended)
		}
		for s := range group.Targets() {
			if s.Fails != 0 || s.InFlight != 0 {
				t.Errorf("%+v", s)
			}
		}
		group.Close()
	})
}

// TestHedgeFailsBefore: a second target that refuses the connection is to blame for that, also if the time of the exchange ends
// before the first one responds.
func TestHedgeFailsBefore(t *testing.T) { onPaths(t, testHedgeFailsBefore) }

func testHedgeFailsBefore(t *testing.T, via path) {
	synctest.Test(t, func(t *testing.T) {
		leaktest.Check(t)
		targets := &timed{after: map[string]time.Duration{"192.0.2.1:80": time.Hour}}
		dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
			if addr != "192.0.2.1:80" {
				return nil, errors.New("connection refused")
			}
			return targets.dial(ctx, network, addr)
		}
		group := groupOf(t, upstream.Options{DialContext: dial}, upstream.Target{Addr: "192.0.2.1:80", MaxFails: 2}, upstream.Target{Addr: "192.0.2.2:80", MaxFails: 2})
		p := newProxy(t, via, proxy.Options{Upstream: group, Timeout: 10 * time.Second, Retry: proxy.Retry{Hedge: time.Second}})
		ctx, record := filters.WithNewResult(t.Context())
		w := httptest.NewRecorder()
		p.ServeHTTP(w, httptest.NewRequest("GET", "http://gateway.test/", nil).WithContext(ctx))
		if w.Code != 504 || len(record.Attempts) != 2 {
			t.Fatalf("%d, %+v", w.Code, record.Attempts)
		}
		if a, e := record.Attempts[0], (*culvert.Error)(nil); !errors.As(a.Err, &e) || e.Kind != culvert.DialFailed || e.Target != "192.0.2.2:80" || a.Total != 0 {
			t.Errorf("the second attempt: %+v", a)
		}
		for s := range group.Targets() {
			if s.Fails != 1 {
				t.Errorf("%s has %d failures", s.Target.Addr, s.Fails)
			}
		}
		group.Close()
	})
}

// TestHedgeBound: a client that is bound to a target may have a session with it, which no other target knows: the request
// has that target alone, however long it takes, and keeps the cookie of Sticky.
func TestHedgeBound(t *testing.T) { onPaths(t, testHedgeBound) }

func testHedgeBound(t *testing.T, via path) {
	const slow, other = "192.0.2.1:80", "192.0.2.2:80"
	byKey := func(r *http.Request) string { return r.Header.Get("Key") }
	sticky := upstream.Sticky(upstream.StickyOptions{Otherwise: upstream.First()})
	for name, test := range map[string]struct {
		balance upstream.Balance
		key     string
		cookie  bool
		hedged  bool
	}{
		"sticky":                 {sticky, "", true, false},
		"sticky, new client":     {sticky, "", false, true},
		"IPHash":                 {upstream.IPHash(), "", false, false},
		"Hash":                   {upstream.Hash(byKey), "k", false, false},
		"Hash without a key":     {upstream.Hash(byKey), "", false, true},
		"HashModulo":             {upstream.HashModulo(byKey), "k", false, false},
		"HashModulo without key": {upstream.HashModulo(byKey), "", false, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				leaktest.Check(t)
				targets := &timed{after: map[string]time.Duration{slow: 20 * time.Second, other: 20 * time.Second}}
				group := groupOf(t, upstream.Options{DialContext: targets.dial, Balance: test.balance}, upstream.Target{Addr: slow}, upstream.Target{Addr: other})
				p := newProxy(t, via, proxy.Options{Upstream: group, Retry: proxy.Retry{Hedge: time.Second}})
				r := httptest.NewRequest("GET", "http://gateway.test/", nil)
				if test.key != "" {
					r.Header.Set("Key", test.key)
				}
				if test.cookie {
					lease, err := group.Pick(t.Context(), r)
					if err != nil {
						t.Fatal(err)
					}
					r.AddCookie(lease.Cookie(r))
					lease.Done(upstream.Outcome{})
				}
				w := httptest.NewRecorder()
				p.ServeHTTP(w, r)
				synctest.Wait()
				if hedged := len(targets.saw) == 2; w.Code != 200 || hedged != test.hedged {
					t.Errorf("%d, and the targets saw %q", w.Code, targets.saw)
				}
				if cookie := w.Header().Get("Set-Cookie"); test.cookie && cookie != "" {
					t.Errorf("the client is moved by %q", cookie)
				}
				group.Close()
			})
		})
	}
}
