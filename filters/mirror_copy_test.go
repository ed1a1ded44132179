package filters_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
)

type originalKey struct{}

// A copy has the context that MirrorOptions.Context returns, which does not end with the original's.
func TestMirrorContextOfACopy(t *testing.T) {
	leaktest.Check(t)
	values := make(chan any, 1)
	gone := make(chan struct{})
	m, err := filters.NewMirror(filters.MirrorOptions{
		Context: func(copy context.Context, r *http.Request) context.Context {
			return context.WithValue(copy, originalKey{}, r.URL.Path)
		},
		To: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			<-gone
			if r.Context().Err() == nil {
				values <- r.Context().Value(originalKey{})
			}
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r := httptest.NewRequest("GET", "/path", nil).WithContext(ctx)
	m.Filter(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(httptest.NewRecorder(), r)
	cancel()
	close(gone)
	if got := wiretest.Await(t, values, "copy"); got != "/path" {
		t.Errorf("the copy's context has %v", got)
	}
	if err := m.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// A request that is made on behalf of another one has a Result of its own.
func TestNewResult(t *testing.T) {
	outer, record := filters.WithResult(t.Context())
	inner, own := filters.WithNewResult(outer)
	if own == record || filters.ResultFrom(inner) != own || filters.ResultFrom(outer) != record {
		t.Error("the two share a record")
	}
}
