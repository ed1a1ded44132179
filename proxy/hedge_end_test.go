package proxy_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
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

// Neither the request that is to find whether a target is back is hedged, nor is such a target the second one.
func TestHedgeOnTrial(t *testing.T) { onPaths(t, testHedgeOnTrial) }
func testHedgeOnTrial(t *testing.T, via path) {
	const a, b = "192.0.2.1:80", "192.0.2.2:80"
	for _, broken := range []string{a, b} {
		synctest.Test(t, func(t *testing.T) {
			targets := &timed{after: map[string]time.Duration{broken: -time.Millisecond}}
			list := []upstream.Target{{Addr: a, Down: broken == b}, {Addr: b}}
			group := groupOf(t, upstream.Options{Balance: upstream.First(), DialContext: targets.dial, MaxEjected: 1}, list...)
			p := newProxy(t, via, proxy.Options{Upstream: group, Retry: proxy.Retry{Hedge: time.Second}})
			get := func() int {
				w := httptest.NewRecorder()
				p.ServeHTTP(w, httptest.NewRequest("GET", "http://gateway.test/", nil))
				return w.Code
			}
			if code := get(); code != 502 {
				t.Errorf("a broken target: %d", code)
			}
			list[0].Down = false
			if err := group.Set(list...); err != nil {
				t.Fatal(err)
			}
			time.Sleep(11 * time.Second)
			targets.mu.Lock()
			targets.after, targets.saw = map[string]time.Duration{a: 3 * time.Second, b: time.Second}, nil
			targets.mu.Unlock()
			if code := get(); code != 200 || len(targets.saw) != 1 {
				t.Errorf("%s was broken: %d, and the targets saw %q", broken, code, targets.saw)
			}
			group.Close()
			synctest.Wait()
		})
	}
}

// A second target that was overtaken was tried: it is not sent the request again in place of a response that is dropped. One of
// another group is not sent it at all.
func TestHedgeTried(t *testing.T) { onPaths(t, testHedgeTried) }
func testHedgeTried(t *testing.T, via path) {
	const a, b = "192.0.2.1:80", "192.0.2.2:80"
	for _, twoGroups := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			targets := &timed{after: map[string]time.Duration{a: 2 * time.Second, b: 500 * time.Millisecond}}
			o := proxy.Options{Retry: proxy.Retry{Hedge: time.Second}}
			group, other := groupAt(t, upstream.Options{DialContext: targets.dial}, a, b), groupAt(t, upstream.Options{DialContext: targets.dial}, b)
			o.Upstream = group
			want := 1
			if twoGroups {
				o.Upstream = pickerFunc(func(ctx context.Context, r *http.Request, tried ...upstream.Lease) (upstream.Lease, error) {
					if len(tried) > 0 {
						return other.Pick(ctx, r)
					}
					return group.Pick(ctx, r)
				})
			} else {
				want, targets.after[b] = 2, time.Hour
				o.Retry.Statuses = []int{200}
			}
			w := httptest.NewRecorder()
			newProxy(t, via, o).ServeHTTP(w, httptest.NewRequest("GET", "http://gateway.test/", nil))
			synctest.Wait()
			if w.Body.String() != a || len(targets.saw) != want || other.InFlight()+group.InFlight() != 0 {
				t.Errorf("two groups %v: from %s, the targets saw %q", twoGroups, w.Body, targets.saw)
			}
			group.Close()
			other.Close()
			synctest.Wait()
		})
	}
}

// closeCounter is a body that counts its Close.
type closeCounter struct {
	io.Reader
	open *atomic.Int32
}

func (c closeCounter) Close() error {
	c.open.Add(-1)
	return nil
}

// The response of an attempt that was overtaken is closed, also if its transport does not heed the end of the context.
func TestHedgeClosesOvertaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var open atomic.Int32
		transport := roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.URL.Host == "192.0.2.1:80" {
				time.Sleep(time.Minute)
			}
			open.Add(1)
			return &http.Response{StatusCode: 200, ProtoMajor: 1, Header: http.Header{}, ContentLength: -1,
				Body: closeCounter{strings.NewReader(r.URL.Host), &open}}, nil
		})
		group := groupAt(t, upstream.Options{}, "192.0.2.1:80", "192.0.2.2:80")
		p := newProxy(t, anyPath, proxy.Options{Upstream: group, Transport: transport, Retry: proxy.Retry{Hedge: time.Second}})
		w := httptest.NewRecorder()
		p.ServeHTTP(w, httptest.NewRequest("GET", "http://gateway.test/", nil))
		if n := open.Load(); w.Body.String() != "192.0.2.2:80" || n != 0 {
			t.Errorf("from %s, %d bodies are open", w.Body, n)
		}
		group.Close()
	})
}
