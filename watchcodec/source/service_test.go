package source_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/watchcodec/source"
)

// TestWaitAfterGoodService: a server that cuts connections off again and again, each after a while
// of service, is retried at once each time; one that cuts each off at its start is not.
func TestWaitAfterGoodService(t *testing.T) {
	for serves, want := range map[time.Duration][2]int{5 * time.Second: {50, 62}, 0: {5, 40}} {
		synctest.Test(t, func(t *testing.T) {
			requests := 0
			h := func(w http.ResponseWriter, r *http.Request) {
				requests++
				w.Header().Set("Content-Type", "application/json")
				if r.URL.Query().Get("sendInitialEvents") == "true" {
					_, _ = io.WriteString(w, end+"\n")
				}
				_ = http.NewResponseController(w).Flush()
				time.Sleep(serves)
				panic(http.ErrAbortHandler)
			}
			_, err := play(t, map[string][]http.HandlerFunc{"watchlist": {h}, "watch": {h}}, newRecord(), 5*time.Minute)
			if !errors.Is(err, context.DeadlineExceeded) || requests < want[0] || requests > want[1] {
				t.Errorf("served for %v each time: %d requests in 5 minutes, want %v; it ended with %v", serves, requests, want, err)
			}
		})
	}
}

// TestMaxWatch: the server receives a new request within MaxWatch, whether the watch began with
// initial events or not and even if the server ignores timeoutSeconds, and no event is lost by
// that; if the server refuses, Run ends.
func TestMaxWatch(t *testing.T) {
	for name, plain := range map[string]bool{"all as events": false, "a list first": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				leaktest.Check(t)
				began := time.Now()
				var valid atomic.Bool
				valid.Store(true)
				var last, longest time.Duration
				var versions []string
				h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					now := time.Since(began)
					longest, last = max(longest, now-last), now
					q := r.URL.Query()
					switch {
					case !valid.Load():
						w.WriteHeader(http.StatusUnauthorized)
					case plain && q.Get("sendInitialEvents") == "true":
						w.WriteHeader(http.StatusUnprocessableEntity)
					case !q.Has("watch"):
						text(200, "application/json", list("10", ""))(w, r)
					case q.Get("sendInitialEvents") == "true":
						events(end)(w, r)
					default:
						versions = append(versions, q.Get("resourceVersion"))
						events(event("ADDED", "a", "11"), strings.Repeat(" ", 10)+`{"type":"ADDED","obj`)(w, r)
					}
				})
				r := newRecord()
				s, err := source.New(source.Options{Handler: h, Request: httptest.NewRequest("GET", "/api/v1/things", nil), Sink: r, MaxWatch: 20 * time.Second})
				if err != nil {
					t.Fatal(err)
				}
				ended := make(chan error)
				go func() { ended <- s.Run(t.Context()) }()
				time.Sleep(5 * time.Minute)
				valid.Store(false)
				revoked := time.Now()
				var refused *source.RefusedError
				if err := <-ended; !errors.As(err, &refused) || time.Since(revoked) > 20*time.Second {
					t.Errorf("it ended %v after the credentials with %v", time.Since(revoked), err)
				}
				if longest > 20*time.Second || len(versions) < 12 || len(versions) > 30 || versions[0] != "10" || versions[1] != "11" {
					t.Errorf("at most %v between two requests, from the versions %v", longest, versions)
				}
				if len(r.objects) != 1 || strings.Contains(strings.Join(r.calls, "\n"), "lost") {
					t.Errorf("%v %q", r.objects, r.calls)
				}
			})
		})
	}
}

// TestHandlersThatFlush: handlers may assert http.Flusher.
func TestHandlersThatFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRecord()
		_, _ = play(t, map[string][]http.HandlerFunc{"watchlist": {func(w http.ResponseWriter, q *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			flusher, ok := w.(http.Flusher)
			if !ok {
				http.Error(w, "streaming is not supported", http.StatusInternalServerError)
				return
			}
			flusher.Flush()
			_, _ = io.WriteString(w, end+"\n")
			<-q.Context().Done()
		}}}, r, time.Minute)
		r.expect(t, map[string]string{}, "replacing", "replaced v1 Thing")
	})
}

// TestEventOfUnknownKind: an event about an object without kind and apiVersion ends the watch; the
// sink must not have to guess them.
func TestEventOfUnknownKind(t *testing.T) {
	for _, meta := range []string{`"apiVersion":"v1",`, `"kind":"Thing",`, ``} {
		synctest.Test(t, func(t *testing.T) {
			r := newRecord()
			_, _ = play(t, map[string][]http.HandlerFunc{"watchlist": {events(`{"type":"ADDED","object":{` + meta + `"metadata":{"name":"a","resourceVersion":"5"}}}`)}}, r, time.Minute)
			if calls := strings.Join(r.calls, "\n"); len(r.objects) > 0 || strings.Contains(calls, "set") || !strings.Contains(calls, "lost") {
				t.Errorf("%q: %v, %q", meta, r.objects, calls)
			}
		})
	}
}
