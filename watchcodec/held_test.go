package watchcodec_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/watchcodec"
)

// TestControllerBehindFilter: a handler behind the filter can bound its client's reads and writes,
// for every kind of request.
func TestControllerBehindFilter(t *testing.T) {
	filter := must(watchcodec.NewFilter(watchcodec.FilterOptions{Rewriter: func(*http.Request, watchcodec.Request) watchcodec.Rewriter {
		return func(*watchcodec.Object) (bool, error) { return true, nil }
	}}))
	server := wiretest.NewServer(filter(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := http.NewResponseController(w)
		for name, err := range map[string]error{
			"SetReadDeadline":  c.SetReadDeadline(time.Now().Add(time.Minute)),
			"SetWriteDeadline": c.SetWriteDeadline(time.Now().Add(time.Minute)),
			"EnableFullDuplex": c.EnableFullDuplex(),
		} {
			if err != nil {
				t.Errorf("%s %s: %s: %v", r.Method, r.URL, name, err)
			}
		}
		w.WriteHeader(http.StatusNoContent)
	})))
	defer server.Close()
	for _, target := range []string{"GET " + carpsPath, "GET " + carpsPath + "?watch=1", "GET " + carpsPath + "/n1", "POST " + carpsPath} {
		method, path, _ := strings.Cut(target, " ")
		req := must(http.NewRequest(method, server.URL+path, nil))
		resp := must(server.Client().Do(req))
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
}

// TestNoLengthWithoutContent: a response to a request for an object has a Content-Length only if its status permits content.
func TestNoLengthWithoutContent(t *testing.T) {
	filter := must(watchcodec.NewFilter(watchcodec.FilterOptions{Rewriter: func(*http.Request, watchcodec.Request) watchcodec.Rewriter {
		return func(*watchcodec.Object) (bool, error) { return true, nil }
	}}))
	for _, status := range []int{http.StatusNoContent, http.StatusNotModified} {
		w := httptest.NewRecorder()
		filter(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })).ServeHTTP(w, httptest.NewRequest("GET", carpsPath+"/n1", nil))
		if length := w.Header()["Content-Length"]; w.Code != status || length != nil {
			t.Errorf("%d with Content-Length %q, want %d with none", w.Code, length, status)
		}
	}
}
