package watchcodec_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
	"github.com/culvert-go/culvert/watchcodec"
)

// An object that is too large for the filter is not a failure of the client, which is still
// connected.
func TestTooLargeIsNotTheClients(t *testing.T) {
	target := wiretest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"kind":"Carp","apiVersion":"v1","metadata":{"name":"` + strings.Repeat("x", 1000) + `"}}`))
	}))
	defer target.Close()
	group, err := upstream.New(upstream.Options{}, upstream.Target{Addr: target.Listener.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	defer group.Close()
	var kind culvert.ErrorKind
	p, err := proxy.New(proxy.Options{Upstream: group, OnError: func(_ *http.Request, e *culvert.Error) { kind = e.Kind }})
	if err != nil {
		t.Fatal(err)
	}
	filter, err := watchcodec.NewFilter(watchcodec.FilterOptions{MaxObject: 100, Rewriter: func(*http.Request, watchcodec.Request) watchcodec.Rewriter {
		return func(*watchcodec.Object) (bool, error) { return true, nil }
	}})
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	filter(p).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/v1/namespaces/a/pods/b", nil))
	if w.Code != http.StatusBadGateway || kind != culvert.Internal {
		t.Errorf("status %d, kind %v", w.Code, kind)
	}
}
