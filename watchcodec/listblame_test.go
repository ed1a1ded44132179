package watchcodec_test

import (
	"io"
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

// The filter's own list that it can't read, or does not need, is not a failure of the client, which
// is still connected.
func TestListThatCannotBeReadIsNotTheClients(t *testing.T) {
	for name, test := range map[string]struct {
		contentType string
		status      int
		list        string
		kinds       []culvert.ErrorKind // that OnError is called with
	}{
		"no list":              {"application/json", 200, "no list", []culvert.ErrorKind{culvert.Internal}},
		"in a form not read":   {"text/html", 200, "no list", []culvert.ErrorKind{culvert.Internal}},
		"Expired":              {"application/json", 410, `{"kind":"Status","code":410}`, nil},
		"an error without end": {"application/json", 500, strings.Repeat("x", 1<<20), nil}, // the rest is not read
		"a silent error":       {"application/json", 500, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			target := wiretest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				if strings.Contains(r.URL.RawQuery, "watch=1") {
					_, _ = io.WriteString(w, pod("MODIFIED", "had", "no", "8"))
					return
				}
				w.Header().Set("Content-Type", test.contentType)
				w.WriteHeader(test.status)
				if _, _ = io.WriteString(w, test.list); test.list == "" {
					_ = http.NewResponseController(w).Flush()
					<-r.Context().Done()
				}
			}))
			defer target.Close()
			group := must(upstream.New(upstream.Options{}, upstream.Target{Addr: target.Listener.Addr().String()}))
			defer group.Close()
			var kinds []culvert.ErrorKind
			p := must(proxy.New(proxy.Options{Upstream: group, OnError: func(r *http.Request, e *culvert.Error) {
				if !strings.Contains(r.URL.RawQuery, "watch=1") { // the watch's writes fail as well, after the ERROR event
					kinds = append(kinds, e.Kind)
				}
			}}))
			w := httptest.NewRecorder()
			func() {
				defer func() { _ = recover() }() // the abort after the ERROR event
				must(newSmallFilter())(p).ServeHTTP(w, httptest.NewRequest("GET", "/api/v1/pods?watch=1&resourceVersion=7", nil))
			}()
			if !strings.Contains(w.Body.String(), `"code":410`) {
				t.Errorf("the client receives %q", w.Body)
			}
			if len(kinds) != len(test.kinds) || len(kinds) > 0 && kinds[0] != test.kinds[0] {
				t.Errorf("OnError is called with %v, want %v", kinds, test.kinds)
			}
		})
	}
}

// newSmallFilter returns a filter with a small MaxObject.
func newSmallFilter() (func(http.Handler) http.Handler, error) {
	return watchcodec.NewFilter(watchcodec.FilterOptions{MaxObject: 1000, Rewriter: func(*http.Request, watchcodec.Request) watchcodec.Rewriter { return seen }})
}
