package watchcodec_test

import (
	"math"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/culvert-go/culvert/watchcodec"
)

// The largest MaxObject bounds nothing, compressed objects included.
func TestLargestMaxObject(t *testing.T) {
	const object = `{"kind":"Carp","apiVersion":"v1","metadata":{"name":"a"}}`
	filter, err := watchcodec.NewFilter(watchcodec.FilterOptions{MaxObject: math.MaxInt, Rewriter: func(*http.Request, watchcodec.Request) watchcodec.Rewriter {
		return func(*watchcodec.Object) (bool, error) { return true, nil }
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/api/v1/namespaces/a/carps/a", "/api/v1/carps", "/api/v1/carps?watch=1"} {
		content := map[string]string{
			"/api/v1/carps":         `{"kind":"CarpList","apiVersion":"v1","metadata":{},"items":[{"metadata":{"name":"a"}}]}`,
			"/api/v1/carps?watch=1": `{"type":"ADDED","object":` + object + "}\n",
		}[path]
		if content == "" {
			content = object
		}
		w := httptest.NewRecorder()
		filter(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(gzipped(content))
		})).ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Code != http.StatusOK || w.Body.String() != content {
			t.Errorf("%s: status %d, %q", path, w.Code, w.Body)
		}
	}
}
