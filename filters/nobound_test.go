package filters_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/filters"
)

// With a negative time a request waits for its place, and a copy for its end, as long as it takes.
func TestNegativeTimesAreNoBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			select {
			case <-time.After(24 * time.Hour):
			case <-r.Context().Done():
				t.Errorf("%s was ended: %v", r.URL.Path, r.Context().Err())
			}
		})
		m, err := filters.NewMirror(filters.MirrorOptions{To: slow, Timeout: -1})
		if err != nil {
			t.Fatal(err)
		}
		limit := good(t)(filters.Concurrency(filters.ConcurrencyOptions{Max: 1, Queue: 1, QueueTimeout: -1}))
		h := m.Filter(limit(slow))
		statuses := make(chan int)
		for range 2 {
			go func() {
				w := httptest.NewRecorder()
				h.ServeHTTP(w, get())
				statuses <- w.Code
			}()
		}
		for range 2 {
			if got := <-statuses; got != 200 {
				t.Errorf("status %d", got)
			}
		}
		if err := m.Close(t.Context()); err != nil || m.Dropped() != 0 {
			t.Errorf("the copies ended with %v, %d dropped", err, m.Dropped())
		}
	})
}
