package view_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/watchcodec"
	"github.com/culvert-go/culvert/watchcodec/view"
)

// With negative times a request waits a minute for its View, which is kept for a day without a client and
// sends the server no further request, and a watch has no bookmarks.
func TestNegativeTimesAreNoBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leaktest.Check(t)
		server, p := aThing(t)
		requests := 0
		slow := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if requests++; requests == 1 {
				time.Sleep(time.Minute)
			}
			server.ServeHTTP(w, r)
		})
		views := newViews(t, view.Options{
			Reauthorize: -1, WriteTimeout: -1, SyncTimeout: -1, InitialTimeout: -1, BookmarkEvery: -1, Idle: -1,
		}, p)
		defer views.Close()
		h := views.Filter(guarded(slow, func(string, watchcodec.Request) int { return http.StatusOK }))
		expect(t, do(t, h, "GET", collectionPath), "ThingList a: blue of 1")
		time.Sleep(24 * time.Hour)
		if stats := views.Stats(); len(stats) != 1 {
			t.Errorf("Views: %+v", stats)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", collectionPath+"?watch=1&allowWatchBookmarks=true", nil).WithContext(ctx))
		if got := w.Body.String(); strings.Count(got, `"type"`) != 1 || !strings.Contains(got, `"ADDED"`) {
			t.Errorf("the watch received %s", got)
		}
		if requests != 1 {
			t.Errorf("the server received %d requests", requests)
		}
	})
}
