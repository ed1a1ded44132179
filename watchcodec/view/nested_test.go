package view_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/internal/nested"
	"github.com/culvert-go/culvert/watchcodec"
	"github.com/culvert-go/culvert/watchcodec/view"
)

// TestViewOfANestedRequest: a View outlives the request that it was made for. Even if that request
// is part of another one, and so must not wait for a place, the View's own lists and watches may
// wait.
func TestViewOfANestedRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		views, err := view.New(view.Options{Renderer: func(*http.Request, watchcodec.Request) view.Renderer { return &panicky{paint: newPaint()} }})
		if err != nil {
			t.Fatal(err)
		}
		requests := 0
		h := views.Filter(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			requests++
			if nested.Is(r.Context()) {
				t.Error("a View's request must not wait")
			}
			w.WriteHeader(http.StatusForbidden)
		}))
		ctx, cancel := context.WithTimeout(nested.With(t.Context()), time.Minute)
		defer cancel()
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, collectionPath, nil).WithContext(ctx))
		if requests == 0 {
			t.Error("nothing was requested")
		}
		views.Close()
	})
}
