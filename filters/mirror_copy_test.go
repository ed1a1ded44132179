package filters_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
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

// With Upgrades a request for a tunnel is copied as one that opens none.
func TestMirrorOfUpgrades(t *testing.T) {
	leaktest.Check(t)
	copies := make(chan *http.Request, 1)
	m, err := filters.NewMirror(filters.MirrorOptions{Upgrades: true, To: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { copies <- r })})
	if err != nil {
		t.Fatal(err)
	}
	for method, want := range map[string]string{"GET": "GET", "POST": "POST", "CONNECT": "GET"} {
		r := httptest.NewRequest(method, "http://a.test/", nil)
		r.Header.Set("Upgrade", "x")
		r.Header.Set("Connection", "upgrade")
		if method == "CONNECT" { // what follows is the tunnel's
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader("up")), -1
		}
		m.Filter(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if up, _ := io.ReadAll(r.Body); r.Method != method || r.Header.Get("Upgrade") != "x" || method == "CONNECT" && string(up) != "up" {
				t.Errorf("%s: the original is a %s with %v and %q", method, r.Method, r.Header, up)
			}
		})).ServeHTTP(httptest.NewRecorder(), r)
		c := wiretest.Await(t, copies, "copy")
		if c.Method != want || len(c.Header) != 0 || c.ContentLength != 0 || c.Body != http.NoBody {
			t.Errorf("%s: the copy is a %s with %v and %d bytes", method, c.Method, c.Header, c.ContentLength)
		}
	}
	if err := m.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
