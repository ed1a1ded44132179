package filters_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/cachectl"
	"github.com/culvert-go/culvert/filters"
)

// hotPath returns a handler with the filters that most gateways have around a proxy.
func hotPath(t testing.TB, log culvert.Filter) http.Handler {
	headers, err := filters.Headers(filters.HeaderRule{Set: http.Header{"X-Gateway": {"yes"}}}, filters.HeaderRule{Status: filters.StatusClass(5), Remove: []string{"X-Powered-By"}})
	if err != nil {
		t.Fatal(err)
	}
	cache, err := cachectl.New(cachectl.ErrorPages())
	if err != nil {
		t.Fatal(err)
	}
	content := []byte("hello")
	kind, length := []string{"text/plain"}, []string{"5"}
	return filters.NewChain(log, headers, cache).ThenFunc(func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		h["Content-Type"], h["Content-Length"] = kind, length
		_, _ = w.Write(content)
	})
}

func hotRequest() *http.Request {
	return &http.Request{Method: "GET", URL: &url.URL{Path: "/path", RawQuery: "q=1"}, RequestURI: "/path?q=1", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Host: "culvert.test",
		RemoteAddr: "192.0.2.7:1234", Header: http.Header{"User-Agent": {"bench"}, "Accept": {"*/*"}, "Cookie": {"a=b"}}}
}

// bareWriter is a ResponseWriter that allocates nothing.
type bareWriter struct{ h http.Header }

func (w *bareWriter) Header() http.Header              { return w.h }
func (w *bareWriter) WriteHeader(int)                  {}
func (w *bareWriter) Write(p []byte) (int, error)      { return len(p), nil }
func (w *bareWriter) SetWriteDeadline(time.Time) error { return nil }

// logs returns the access logs, with output that is discarded.
func logs() map[string]culvert.Filter {
	return map[string]culvert.Filter{
		"slog":     filters.AccessLog(slog.New(slog.NewTextHandler(io.Discard, nil))),
		"combined": filters.CombinedLog(io.Discard),
	}
}

// BenchmarkHotPath measures the filters together: the cleaning of the header, a log line, rules for
// header fields and for caches.
func BenchmarkHotPath(b *testing.B) {
	for name, log := range logs() {
		b.Run(name, func(b *testing.B) {
			h, r, w := hotPath(b, log), hotRequest(), &bareWriter{http.Header{}}
			b.ReportAllocs()
			for b.Loop() {
				clear(w.h)
				h.ServeHTTP(w, r)
			}
		})
	}
}
