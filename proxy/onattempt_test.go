package proxy_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
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

// tracing is an observer as those of tracing are: it numbers the attempts and sends the number with each.
type tracing struct {
	mu      sync.Mutex
	started []string
	ended   []culvert.Attempt
}

func (s *tracing) attempt(out *http.Request, target string) func(culvert.Attempt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.started = append(s.started, fmt.Sprintf("%s %s, host is the target's: %v", out.Method, out.URL.Path, out.URL.Host == target))
	out.Header.Add("Traceparent", fmt.Sprint(len(s.started)))
	out.Header.Del("User-Agent")
	out.Header["content-length"] = []string{"7"} // which is dropped
	return func(a culvert.Attempt) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.ended = append(s.ended, a)
	}
}

// OnAttempt sees each attempt, and what it sets is sent in that attempt alone.
func TestOnAttempt(t *testing.T) { onPaths(t, testOnAttempt) }
func testOnAttempt(t *testing.T, via path) {
	leaktest.Check(t)
	first := wiretest.Target(t, func(p *wiretest.Peer) {
		p.Header()
		p.Reset()
	})
	second, unavailable := recording(t, "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n")
	third, got := recording(t, ok)
	spans := new(tracing)
	p := newProxy(t, via, proxy.Options{
		Upstream:  groupAt(t, upstream.Options{Balance: upstream.First()}, first, second, third),
		Retry:     proxy.Retry{Errors: true, Statuses: []int{503}},
		OnAttempt: spans.attempt,
	})
	client := wiretest.Dial(t, wiretest.Serve(t, p))
	client.Send("GET /a HTTP/1.1\r\nHost: a\r\nTraceparent: client\r\n\r\n")
	client.Status(200)
	client.Send("GET /b HTTP/1.1\r\nHost: a\r\n\r\n") // behind which the record of the first is complete
	client.Status(200)
	spans.mu.Lock()
	defer spans.mu.Unlock()
	if want := "GET /a, host is the target's: true"; len(spans.started) < 4 || spans.started[0] != want || spans.started[2] != want {
		t.Errorf("started %q", spans.started)
	}
	if a := spans.ended; len(a) < 3 || a[0].Target != first || a[0].Err == nil || a[1].Status != 503 || a[2].Status != 200 || a[2].Err != nil || a[2].Received != 2 {
		t.Errorf("ended %+v", a)
	}
	for n, header := range []string{<-unavailable, <-got} {
		want := fmt.Sprintf("Traceparent: client\r\nTraceparent: %d\r\n", n+2)
		if !strings.Contains(header, want) || strings.Count(header, "Traceparent") != 2 || strings.Contains(header, "ontent-") || strings.Contains(header, "User-Agent: ") {
			t.Errorf("attempt %d was sent as %q", n+2, header)
		}
	}
}

// What OnAttempt makes of the request besides its fields has no effect.
func TestOnAttemptChangesFieldsAlone(t *testing.T) { onPaths(t, testOnAttemptChangesFieldsAlone) }
func testOnAttemptChangesFieldsAlone(t *testing.T, via path) {
	leaktest.Check(t)
	target, got := recording(t, ok)
	p := newProxy(t, via, proxy.Options{Upstream: groupAt(t, upstream.Options{}, target), OnAttempt: func(out *http.Request, _ string) func(culvert.Attempt) {
		out.Method, out.URL.Path, out.Host, out.Body = "DELETE", "/b", "b", io.NopCloser(strings.NewReader("b"))
		out.Header = nil
		return nil
	}})
	client := wiretest.Dial(t, wiretest.Serve(t, p))
	client.Send("GET /a HTTP/1.1\r\nHost: a\r\nX-A: b\r\n\r\n")
	client.Status(200)
	if header := <-got; !strings.HasPrefix(header, "GET /a HTTP/1.1\r\nHost: a\r\n") || !strings.Contains(header, "X-A: b\r\n") {
		t.Errorf("sent %q", header)
	}
}

// The URL that OnAttempt sees is the one of the attempt, with the base path of its target, byte for byte.
func TestOnAttemptURL(t *testing.T) { onPaths(t, testOnAttemptURL) }
func testOnAttemptURL(t *testing.T, via path) {
	leaktest.Check(t)
	addr, got := recording(t, ok)
	target := upstream.Target{Addr: addr, Path: "/base%2Fa"}
	var seen []string
	p := newProxy(t, via, proxy.Options{Upstream: groupOf(t, upstream.Options{}, target), OnAttempt: func(out *http.Request, _ string) func(culvert.Attempt) {
		seen = append(seen, out.URL.String(), out.URL.Path)
		return nil
	}})
	client := wiretest.Dial(t, wiretest.Serve(t, p))
	client.Send("GET /b%2Fc?d=%zz HTTP/1.1\r\nHost: a\r\n\r\n")
	client.Status(200)
	if header := <-got; !strings.HasPrefix(header, "GET /base%2Fa/b%2Fc?d=%zz HTTP/1.1\r\n") {
		t.Errorf("sent %q", header)
	}
	if want := []string{"http://" + addr + "/base%2Fa/b%2Fc?d=%zz", "/base/a/b/c"}; !slices.Equal(seen, want) {
		t.Errorf("seen %q, want %q", seen, want)
	}
}

// An upgrade is an attempt, too.
func TestOnAttemptOfAnUpgrade(t *testing.T) { onPaths(t, testOnAttemptOfAnUpgrade) }
func testOnAttemptOfAnUpgrade(t *testing.T, via path) {
	leaktest.Check(t)
	target, got := recording(t, "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
	spans := new(tracing)
	p := newProxy(t, via, proxy.Options{Upstream: groupAt(t, upstream.Options{}, target), OnAttempt: spans.attempt})
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), "GET", "/", nil)
	r.Header = http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"13"}, "Sec-Websocket-Key": {"AAAAAAAAAAAAAAAAAAAAAA=="}}
	p.ServeHTTP(w, r)
	if header := <-got; w.Code != 403 || !strings.Contains(header, "Traceparent: 1\r\n") || !strings.Contains(header, "Upgrade: websocket\r\n") {
		t.Errorf("status %d, sent %q", w.Code, header)
	}
	if len(spans.ended) != 1 || spans.ended[0].Status != 403 {
		t.Errorf("ended %+v", spans.ended)
	}
}

// A panic of OnAttempt ends the exchange and releases its target; one of another hook is the end of the attempt.
func TestOnAttemptPanics(t *testing.T) { onPaths(t, testOnAttemptPanics) }
func testOnAttemptPanics(t *testing.T, via path) {
	leaktest.Check(t)
	target, _ := recording(t, ok)
	for name, itself := range map[string]bool{"itself": true, "ModifyResponse": false} {
		t.Run(name, func(t *testing.T) {
			u := groupAt(t, upstream.Options{}, target)
			spans := new(tracing)
			p := newProxy(t, via, proxy.Options{
				Upstream: u,
				OnAttempt: func(out *http.Request, target string) func(culvert.Attempt) {
					if itself {
						panic("a bug")
					}
					return spans.attempt(out, target)
				},
				ModifyResponse: func(*proxy.Response) { panic("a bug") },
			})
			func() {
				defer func() {
					if v := recover(); v != "a bug" {
						t.Errorf("panic %v", v)
					}
				}()
				p.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), "GET", "/", nil))
			}()
			if n := u.InFlight(); n != 0 {
				t.Errorf("%d requests are in flight", n)
			}
			for s := range u.Targets() {
				if s.Fails > 0 {
					t.Errorf("%d failures of the target", s.Fails)
				}
			}
			if !itself && (len(spans.ended) != 1 || spans.ended[0].Status != 200 || spans.ended[0].Err == nil) {
				t.Errorf("ended %+v", spans.ended)
			}
		})
	}
}

// A panic at the end of an attempt whose response is dropped releases the target of the next one, too.
func TestOnAttemptPanicsBehindADroppedResponse(t *testing.T) {
	onPaths(t, testOnAttemptPanicsBehindADroppedResponse)
}
func testOnAttemptPanicsBehindADroppedResponse(t *testing.T, via path) {
	leaktest.Check(t)
	first, _ := recording(t, "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n")
	second, _ := recording(t, ok)
	u := groupAt(t, upstream.Options{Balance: upstream.First()}, first, second)
	p := newProxy(t, via, proxy.Options{
		Upstream:  u,
		Retry:     proxy.Retry{Statuses: []int{503}},
		OnAttempt: func(*http.Request, string) func(culvert.Attempt) { return func(culvert.Attempt) { panic("a bug") } },
	})
	func() {
		defer func() {
			if v := recover(); v != "a bug" {
				t.Errorf("panic %v", v)
			}
		}()
		p.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), "GET", "/", nil))
	}()
	if n := u.InFlight(); n != 0 {
		t.Errorf("%d requests are in flight", n)
	}
}

// A second proxy that responds in the place of a target adds its attempts to the record behind that of the first one.
func TestOnAttemptOfAReplacement(t *testing.T) { onPaths(t, testOnAttemptOfAReplacement) }

func testOnAttemptOfAReplacement(t *testing.T, via path) {
	leaktest.Check(t)
	first, _ := recording(t, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
	second, _ := recording(t, ok)
	outer, inner := new(tracing), new(tracing)
	other := newProxy(t, via, proxy.Options{Upstream: groupAt(t, upstream.Options{}, second), OnAttempt: inner.attempt})
	p := newProxy(t, via, proxy.Options{
		Upstream:       groupAt(t, upstream.Options{}, first),
		OnAttempt:      outer.attempt,
		ModifyResponse: func(r *proxy.Response) { r.ServeInstead(other) },
	})
	ctx, result := filters.WithResult(t.Context())
	w := httptest.NewRecorder()
	p.ServeHTTP(w, httptest.NewRequestWithContext(ctx, "GET", "/", nil))
	if w.Code != 200 {
		t.Errorf("status %d", w.Code)
	}
	a := result.Attempts
	if len(a) != 2 || a[0].Target != first || a[0].Status != 404 || a[0].Start.IsZero() || a[1].Target != second || a[1].Status != 200 || a[1].Received != 2 {
		t.Fatalf("recorded %+v", a)
	}
	if len(outer.ended) != 1 || outer.ended[0] != a[0] || len(inner.ended) != 1 || inner.ended[0] != a[1] {
		t.Errorf("ended %+v and %+v", outer.ended, inner.ended)
	}
}
