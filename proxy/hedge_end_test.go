package proxy_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// A second target of HTTP/2 that refuses the request again and again is sent it once or twice, like a first one.
func TestHedgeRefused(t *testing.T) { onPaths(t, testHedgeRefused) }
func testHedgeRefused(t *testing.T, via path) {
	for kind, refuse := range refusals {
		for _, over := range http2Overs {
			t.Run(over.name+" "+kind, func(t *testing.T) {
				leaktest.Check(t)
				refusing, sent := refusingTarget(t, over, 1<<40, refuse)
				slow := over.script(t, func(f *http2.Framer, stream uint32) error {
					for begun := time.Now(); sent.Load() < 9 && time.Since(begun) < 300*time.Millisecond; {
						time.Sleep(time.Millisecond)
					}
					return f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: headerBlock(":status: 200\n"), EndStream: true, EndHeaders: true})
				})
				p := newProxy(t, via, proxy.Options{Upstream: groupAt(t, over.options, slow, refusing), Retry: proxy.Retry{Hedge: 20 * time.Millisecond}})
				status, record := recorded(t, p, "GET", "")
				if n := sent.Load(); status != 200 || n > 2 || len(record.Attempts) != 2 {
					t.Errorf("status %d, sent %d times to the second target, in %d attempts", status, n, len(record.Attempts))
				}
			})
		}
	}
}

// Response.Out is the request that was sent to the target whose response it is, with the fields of its own attempt.
func TestHedgeOut(t *testing.T) { onPaths(t, testHedgeOut) }
func testHedgeOut(t *testing.T, via path) {
	const a, b = "192.0.2.1:80", "192.0.2.2:80"
	for want, after := range map[string]map[string]time.Duration{
		a: {a: 2 * time.Second, b: time.Hour},
		b: {a: time.Hour, b: time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			targets := &timed{after: after}
			group := groupAt(t, upstream.Options{DialContext: targets.dial}, a, b)
			seen := ""
			p := newProxy(t, via, proxy.Options{Upstream: group, Retry: proxy.Retry{Hedge: time.Second},
				OnAttempt: func(out *http.Request, target string) func(culvert.Attempt) {
					out.Header.Set("Attempt", target)
					return nil
				},
				ModifyResponse: func(r *proxy.Response) { seen = r.Out.URL.Host + " " + r.Out.Header.Get("Attempt") }})
			w := httptest.NewRecorder()
			p.ServeHTTP(w, httptest.NewRequest("GET", "http://gateway.test/", nil))
			if w.Body.String() != want || seen != want+" "+want {
				t.Errorf("from %s, and Out is that of %s", w.Body, seen)
			}
			group.Close()
			synctest.Wait()
		})
	}
}

// Where a function of the program's panics for the second target, the first attempt has ended when the panic is passed on,
// and no target is leased.
func TestHedgePanics(t *testing.T) {
	for name, o := range map[string]proxy.Options{
		"OnAttempt": {OnAttempt: func(_ *http.Request, target string) func(culvert.Attempt) {
			if target != "192.0.2.1:80" {
				panic("bug")
			}
			return nil
		}},
		"Pick": {},
	} {
		t.Run(name, func(t *testing.T) {
			leaktest.Check(t)
			var running atomic.Int32
			group := groupAt(t, upstream.Options{}, "192.0.2.1:80", "192.0.2.2:80")
			o.Upstream = pickerFunc(func(ctx context.Context, r *http.Request, tried ...upstream.Lease) (upstream.Lease, error) {
				if name == "Pick" && len(tried) > 0 {
					panic("bug")
				}
				return group.Pick(ctx, r, tried...)
			})
			o.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
				running.Add(1)
				defer running.Add(-1)
				<-r.Context().Done()
				time.Sleep(20 * time.Millisecond) // what a transport may still do
				return nil, r.Context().Err()
			})
			o.Retry.Hedge = time.Millisecond
			p := newProxy(t, anyPath, o)
			func() {
				defer func() {
					if v := recover(); v != "bug" {
						t.Errorf("recovered %v", v)
					}
				}()
				p.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), "GET", "/", nil))
			}()
			if n := running.Load(); n != 0 {
				t.Errorf("%d round trips run behind the handler", n)
			}
			for s := range group.Targets() {
				if s.InFlight != 0 || s.Fails != 0 {
					t.Errorf("%+v", s)
				}
			}
		})
	}
}

// A second target that had less than half of the time that ran out for all attempts together is not to blame.
func TestHedgeTimeout(t *testing.T) { onPaths(t, testHedgeTimeout) }
func testHedgeTimeout(t *testing.T, via path) {
	const a, b = "192.0.2.1:80", "192.0.2.2:80"
	for range 20 { // either may be the one whose end is noticed first
		synctest.Test(t, func(t *testing.T) {
			targets := &timed{after: map[string]time.Duration{a: time.Hour, b: time.Hour}}
			group := groupOf(t, upstream.Options{DialContext: targets.dial}, upstream.Target{Addr: a, MaxFails: 2}, upstream.Target{Addr: b, MaxFails: 2})
			p := newProxy(t, via, proxy.Options{Upstream: group, Timeout: 10 * time.Second, Retry: proxy.Retry{Hedge: 8 * time.Second}})
			w := httptest.NewRecorder()
			p.ServeHTTP(w, httptest.NewRequest("GET", "http://gateway.test/", nil))
			if w.Code != 504 {
				t.Errorf("status %d", w.Code)
			}
			for s := range group.Targets() {
				if want := map[string]int{a: 1, b: 0}[s.Target.Addr]; s.Fails != want {
					t.Errorf("%s has %d failures, want %d", s.Target.Addr, s.Fails, want)
				}
			}
			group.Close()
			synctest.Wait()
		})
	}
}
