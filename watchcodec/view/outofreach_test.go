package view_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/watchcodec/view"
)

// TestOutOfReach: the last known state is served, with a warning about its age.
func TestOutOfReach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, p := newServer(t, false), newPaint()
		p.set("sky", "blue")
		server.Set(thing("a", [3]string{"sky", "", "0"}))
		var down atomic.Bool
		board := &switchboard{cancel: map[int]context.CancelFunc{}, h: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if down.Load() {
				http.Error(w, "no server", http.StatusBadGateway)
				return
			}
			server.ServeHTTP(w, r)
		})}
		views := newViews(t, view.Options{}, p)
		defer views.Close()
		h := views.Filter(board)
		if got := do(t, h, "GET", collectionPath); got.Header().Get("Warning") != "" {
			t.Errorf("Warning: %s", got.Header().Get("Warning"))
		}
		down.Store(true)
		board.cut()
		time.Sleep(time.Minute)
		p.set("sky", "grey")
		synctest.Wait()
		got := do(t, h, "GET", collectionPath)
		expect(t, got, "ThingList a: grey of 1")
		if warning := got.Header().Get("Warning"); !strings.Contains(warning, "out of reach for ") {
			t.Errorf("Warning: %q", warning)
		}
		if stats := views.Stats(); len(stats) != 1 || stats[0].Stale < 50*time.Second || stats[0].Err == nil {
			t.Errorf("%+v", stats)
		}
		down.Store(false)
		server.Set(thing("b", [3]string{"sky", "", "0"}))
		time.Sleep(time.Minute)
		got = do(t, h, "GET", collectionPath)
		expect(t, got, "ThingList a: grey of 1 b: grey of 1")
		if warning := got.Header().Get("Warning"); warning != "" {
			t.Errorf("Warning: %q", warning)
		}
	})
}

// Packets to and from the server are dropped, so that a watch ends only by its timeout, and the
// next request fails only by the timeout of a dial; or the server refuses connections.
func TestServedWhileOutOfReach(t *testing.T) {
	for name, cut := range map[string]func(b *switchboard, unreachable http.Handler){
		"packets are dropped": func(b *switchboard, unreachable http.Handler) { b.put(unreachable) },
		"connections are refused": func(b *switchboard, _ http.Handler) {
			b.put(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no server", http.StatusBadGateway) }))
			b.cut()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				leaktest.Check(t)
				server, p := aThing(t)
				board := &switchboard{cancel: map[int]context.CancelFunc{}, h: server}
				views := newViews(t, view.Options{}, p)
				defer views.Close()
				gateway := views.Filter(board)
				expect(t, do(t, gateway, "GET", collectionPath, "Authorization", "Bearer caller"), "ThingList a: blue of 1")
				cut(board, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					select {
					case <-r.Context().Done():
					case <-time.After(30 * time.Second):
					}
					http.Error(w, "no server", http.StatusBadGateway)
				}))
				for range 40 { // ten minutes, in which the View's credentials are checked ten times
					at := time.Now()
					expect(t, do(t, gateway, "GET", collectionPath, "Authorization", "Bearer caller"), "ThingList a: blue of 1")
					got := do(t, gateway, "GET", collectionPath+"?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=1", "Authorization", "Bearer caller")
					if events := got.Body.String(); got.Code != http.StatusOK || !strings.Contains(events, `"name":"a"`) || !strings.Contains(events, "initial-events-end") {
						t.Errorf("a watch: %d %s", got.Code, events)
					}
					if after := time.Since(at); after > time.Second {
						t.Errorf("served after %v", after)
					}
					time.Sleep(15*time.Second - time.Since(at))
				}
				if stats := views.Stats(); len(stats) != 1 || stats[0].Stale < 8*time.Minute || stats[0].Err == nil {
					t.Errorf("%+v", stats)
				}
				server.Set(thing("b", [3]string{"sky", "", "0"}))
				board.put(server)
				time.Sleep(2 * time.Minute) // the current attempt, and the wait before the next one
				expect(t, do(t, gateway, "GET", collectionPath, "Authorization", "Bearer caller"), "ThingList a: blue of 1 b: blue of 1")
			})
		})
	}
}
