package view_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/watchcodec"
	"github.com/culvert-go/culvert/watchcodec/view"
	"github.com/culvert-go/culvert/watchcodec/watchtest"
)

// guarded is a server that refuses requests according to rights.
func guarded(server http.Handler, rights func(token string, req watchcodec.Request) int) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		req, _ := watchcodec.Classify(r)
		if status := rights(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), req); status != http.StatusOK {
			watchcodec.WriteStatus(w, watchcodec.NewFailure(status, "No", "the server says no"))
			return
		}
		server.ServeHTTP(w, r)
	})
}

func aThing(t *testing.T) (*watchtest.Server, *paint) {
	server, p := newServer(t, false), newPaint()
	p.set("sky", "blue")
	server.Set(thing("a", [3]string{"sky", "", "0"}))
	return server, p
}

// TestRevokedRights: a caller whose rights are withdrawn loses its watch and its lists within
// Reauthorize, a minute by default, although no connection ends; another caller loses nothing.
func TestRevokedRights(t *testing.T) {
	for set, bound := range map[time.Duration]time.Duration{0: time.Minute, 10 * time.Second: 10 * time.Second} {
		for _, status := range []int{http.StatusUnauthorized, http.StatusForbidden} {
			synctest.Test(t, func(t *testing.T) {
				leaktest.Check(t)
				server, p := aThing(t)
				var revoked atomic.Bool
				h := guarded(server, func(token string, _ watchcodec.Request) int {
					if revoked.Load() && token == "leaver" {
						return status
					}
					return http.StatusOK
				})
				views := newViews(t, view.Options{Reauthorize: set}, p)
				defer views.Close()
				gateway := views.Filter(h)
				ended := map[string]chan time.Time{"leaver": make(chan time.Time, 1), "stayer": make(chan time.Time, 1)}
				ctx, cancel := context.WithCancel(t.Context())
				for token, over := range ended {
					go func() {
						r := httptest.NewRequest("GET", collectionPath+"?watch=1", nil).WithContext(ctx)
						r.Header.Set("Authorization", "Bearer "+token)
						gateway.ServeHTTP(httptest.NewRecorder(), r)
						over <- time.Now()
					}()
				}
				time.Sleep(7 * time.Minute)
				revoked.Store(true)
				at := time.Now()
				if after := (<-ended["leaver"]).Sub(at); after > bound {
					t.Errorf("Reauthorize %v: the watch ended after %v", set, after)
				}
				if got := do(t, gateway, "GET", collectionPath, "Authorization", "Bearer leaver"); got.Code != status {
					t.Errorf("a list afterwards: %d %s", got.Code, got.Body)
				}
				expect(t, do(t, gateway, "GET", collectionPath, "Authorization", "Bearer stayer"), "ThingList a: blue of 1")
				cancel()
				if gone := (<-ended["stayer"]).Sub(at); gone < 0 {
					t.Error("the other watch had ended before")
				}
			})
		}
	}
}

// TestRightToOneObject: a caller that may get an object by its name and not list gets it, rendered,
// and nothing else.
func TestRightToOneObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, p := aThing(t)
		h := guarded(server, func(_ string, req watchcodec.Request) int {
			if req.Verb == "get" && req.Name == "a" {
				return http.StatusOK
			}
			return http.StatusForbidden
		})
		views := newViews(t, view.Options{}, p)
		defer views.Close()
		gateway := views.Filter(h)
		for target, want := range map[string]int{
			collectionPath:                               http.StatusForbidden,
			collectionPath + "?watch=1":                  http.StatusForbidden,
			"/apis/example.org/v1/namespaces/n/things/a": http.StatusOK,
			"/apis/example.org/v1/namespaces/n/things/b": http.StatusForbidden,
		} {
			got := do(t, gateway, "GET", target)
			if got.Code != want || want == http.StatusOK && !strings.Contains(got.Body.String(), "blue of 1") {
				t.Errorf("%s: %d %s, want %d", target, got.Code, got.Body, want)
			}
		}
	})
}

// TestMadeUpTokens: while the server does not respond, requests with unknown tokens replace the
// Views of other unknown tokens, and not those of callers that the server has accepted; one address
// has its bound.
func TestMadeUpTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leaktest.Check(t)
		server, p := aThing(t)
		var down atomic.Bool
		board := &switchboard{cancel: map[int]context.CancelFunc{}, h: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if down.Load() {
				http.Error(w, "no server", http.StatusBadGateway)
				return
			}
			server.ServeHTTP(w, r)
		})}
		views := newViews(t, view.Options{MaxViews: 20, MaxPending: 5, SyncTimeout: time.Second}, p)
		defer views.Close()
		gateway := views.Filter(board)
		from := func(address, token string) *httptest.ResponseRecorder {
			r := httptest.NewRequest("GET", collectionPath, nil)
			r.RemoteAddr = address + ":1000"
			r.Header.Set("Authorization", "Bearer "+token)
			w := httptest.NewRecorder()
			gateway.ServeHTTP(w, r)
			return w
		}
		for i := range 10 {
			expect(t, from("192.0.2.1", fmt.Sprint("good", i)), "ThingList a: blue of 1")
		}
		down.Store(true)
		board.cut()
		var made sync.WaitGroup
		for i := range 1100 { // at the same time, so that they all wait
			made.Go(func() {
				address := "198.51.100.7"
				if i%2 == 0 {
					address = fmt.Sprintf("203.0.113.%d", i%250)
				}
				if got := from(address, fmt.Sprint("made up", i)); got.Code != http.StatusTooManyRequests && got.Code != http.StatusServiceUnavailable {
					t.Errorf("%d %s", got.Code, got.Body)
				}
			})
		}
		made.Wait()
		pending := 0
		for _, s := range views.Stats() {
			if !s.Synced {
				pending++
			}
		}
		if all := len(views.Stats()); all > 20 || pending > 10 {
			t.Errorf("%d views, %d of them never filled", all, pending)
		}
		for i := range 10 {
			expect(t, from("192.0.2.1", fmt.Sprint("good", i)), "ThingList a: blue of 1")
		}
		for i := range 7 { // an address that has sent none of them
			got := from("192.0.2.99", fmt.Sprint("more", i))
			if waits := strings.Contains(got.Body.String(), "does not know yet"); got.Code != http.StatusTooManyRequests || got.Header().Get("Retry-After") == "" || waits != (i < 5) {
				t.Errorf("request %d of an address: %d %s", i+1, got.Code, got.Body)
			}
		}
	})
}

// TestRecordOfARequest: what a View does after the request that it was made for does not change
// that request's result, which is read when the request has ended.
func TestRecordOfARequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, p := aThing(t)
		var theirs sync.Map
		h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if record := filters.ResultFrom(r.Context()); record != nil {
				theirs.Store(record, true)
				record.Upstream = "api" // as a proxy does
			}
			server.ServeHTTP(w, r)
		})
		views := newViews(t, view.Options{}, p)
		defer views.Close()
		ctx, record := filters.WithResult(t.Context())
		w := httptest.NewRecorder()
		views.Filter(h).ServeHTTP(w, httptest.NewRequest("GET", collectionPath, nil).WithContext(ctx))
		expect(t, w, "ThingList a: blue of 1")
		if _, same := theirs.Load(record); same {
			t.Error("the View writes into the record of a request")
		}
	})
}

// TestGetLooksAtOneObject: a GET needs memory for its object only, however many objects there are.
func TestGetLooksAtOneObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, p := aThing(t)
		for i := range 5000 {
			server.Set(thing(fmt.Sprint("t", i), [3]string{"sky", "", "0"}))
		}
		views := newViews(t, view.Options{}, p)
		defer views.Close()
		gateway := views.Filter(server)
		r := httptest.NewRequest("GET", "/apis/example.org/v1/namespaces/n/things/a", nil)
		gateway.ServeHTTP(httptest.NewRecorder(), r)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		const times = 20
		for range times {
			gateway.ServeHTTP(httptest.NewRecorder(), r)
		}
		runtime.ReadMemStats(&after)
		if each := (after.TotalAlloc - before.TotalAlloc) / times; each > 64<<10 {
			t.Errorf("a GET takes %d bytes", each)
		}
	})
}

// The addresses of one IPv6 network share the bound: a client may have any number of them.
func TestPendingOfAnIPv6Network(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leaktest.Check(t)
		_, p := aThing(t)
		views := newViews(t, view.Options{MaxPending: 2, SyncTimeout: time.Second}, p)
		defer views.Close()
		gateway := views.Filter(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no server", http.StatusBadGateway) }))
		for i, address := range []string{"[2001:db8::1]", "[2001:db8::2]", "[2001:db8::3]", "[2001:db8:0:1::1]", "192.0.2.1", "192.0.2.2"} {
			r := httptest.NewRequest("GET", collectionPath, nil)
			r.RemoteAddr = address + ":1000"
			r.Header.Set("Authorization", fmt.Sprint("Bearer ", i))
			gateway.ServeHTTP(httptest.NewRecorder(), r)
		}
		if n := len(views.Stats()); n != 5 {
			t.Errorf("%d views, want 2 of the first network and one of each other address", n)
		}
	})
}
