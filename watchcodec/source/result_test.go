package source_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/record"
	"github.com/culvert-go/culvert/watchcodec/source"
)

// TestEachRequestHasItsOwnResult: a Source runs for long, and the result that its handler records
// for one request is neither that of the next one nor that of the request whose context it uses.
func TestEachRequestHasItsOwnResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		outer, own := record.With(t.Context())
		requests := 0
		handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			requests++
			_, record := record.With(r.Context())
			if record == own || len(record.Attempts) > 0 {
				t.Errorf("request %d, %s, begins with the attempts %+v", requests, r.URL.RawQuery, record.Attempts)
			}
			record.StartAttempt("10.0.0.1:80", time.Now())
			record.HeaderReceived(http.StatusOK)
			record.FinishAttempt(culvert.Attempt{Target: "10.0.0.1:80"})
			switch q := r.URL.Query(); {
			case q.Get("sendInitialEvents") == "true":
				w.WriteHeader(http.StatusUnprocessableEntity)
			case !q.Has("watch"):
				text(200, "application/json", list("10", ""))(w, r)
			default:
				events(event("ADDED", "a", "11"))(w, r)
			}
		})
		s, err := source.New(source.Options{Handler: handler, Request: httptest.NewRequest("GET", "/api/v1/things", nil), Sink: newRecord()})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(outer, time.Minute)
		defer cancel()
		_ = s.Run(ctx)
		if requests < 3 || len(own.Attempts) > 0 {
			t.Errorf("%d requests, and %d attempts in the record of the context", requests, len(own.Attempts))
		}
	})
}
