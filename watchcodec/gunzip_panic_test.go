package watchcodec_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/culvert-go/culvert/watchcodec"
)

// panickingWriter is the writer of an outer filter that panics, to abort the response for instance.
type panickingWriter struct{ http.ResponseWriter }

var errPanicked = errors.New("panic of a writer")

func (panickingWriter) Write([]byte) (int, error) { panic(errPanicked) }

// TestPanicBehindGzip: a panic of the writer that receives the inflated response is passed to the
// handler's goroutine, where net/http recovers it. On another goroutine it would end the program.
func TestPanicBehindGzip(t *testing.T) {
	filter := must(watchcodec.NewFilter(watchcodec.FilterOptions{Rewriter: func(*http.Request, watchcodec.Request) watchcodec.Rewriter {
		return func(*watchcodec.Object) (bool, error) { return true, nil }
	}}))
	var content bytes.Buffer
	z := gzip.NewWriter(&content)
	_, _ = io.WriteString(z, `{"kind":"CarpList","apiVersion":"v1","metadata":{},"items":[{"metadata":{"name":"n1"}}]}`)
	_ = z.Close()
	handler := filter(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(content.Bytes())
	}))
	defer func() {
		if v := recover(); v != errPanicked {
			t.Errorf("the handler panics with %v, want %v", v, errPanicked)
		}
	}()
	handler.ServeHTTP(panickingWriter{httptest.NewRecorder()}, httptest.NewRequest("GET", carpsPath, nil))
}
