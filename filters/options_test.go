package filters_test

import (
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/filters"
)

// Header fields that control how a message is framed or sent can't be set, in any case.
func TestReservedFields(t *testing.T) {
	for _, name := range []string{"Content-Length", "transfer-encoding", "Connection", "upgrade", "Host", "TE", "Trailer", "Keep-Alive"} {
		want := fmt.Sprintf("field %s is chosen by the server", name)
		bad(t, "filters: RequestID: "+want)(filters.RequestID(filters.RequestIDOptions{Field: name}))
		for _, rule := range []filters.HeaderRule{{Remove: []string{name}}, {Set: http.Header{name: {"1"}}}, {Add: http.Header{name: {"1"}}}} {
			bad(t, "filters: Headers: "+want)(filters.Headers(rule))
		}
	}
	bad(t, `filters: Headers: invalid field name "a b"`)(filters.Headers(filters.HeaderRule{Remove: []string{"a b"}}))
	bad(t, `filters: Headers: content type "a;b" matches no response`)(filters.Headers(filters.HeaderRule{ContentTypes: []string{"a;b"}}))
}

// The largest values of the options do not overflow.
func TestLargestConcurrency(t *testing.T) {
	for _, o := range []filters.ConcurrencyOptions{
		{Max: 1, Queue: math.MaxInt, QueueTimeout: math.MaxInt64, RetryAfter: math.MaxInt64}, {Max: math.MaxInt, Queue: math.MaxInt},
	} {
		w := httptest.NewRecorder()
		f := good(t)(filters.Concurrency(o))
		f(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		if w.Code != http.StatusNoContent {
			t.Errorf("%+v: status %d", o, w.Code)
		}
	}
	f := good(t)(filters.Concurrency(filters.ConcurrencyOptions{Max: 1, RetryAfter: math.MaxInt64}))
	inner := httptest.NewRecorder()
	h := f(http.HandlerFunc(nil))
	h = f(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { h.ServeHTTP(inner, httptest.NewRequest("GET", "/", nil)) }))
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	if got := inner.Header().Get("Retry-After"); inner.Code != http.StatusServiceUnavailable || got != "9223372037" {
		t.Errorf("status %d, Retry-After %q", inner.Code, got)
	}
}

// Content types are compared without regard to case.
func TestContentTypesInUpperCase(t *testing.T) {
	f := good(t)(filters.Compress(filters.CompressOptions{ContentTypes: []string{"Text/HTML"}, MinSize: 1}))
	w := httptest.NewRecorder()
	r := httptest.NewRequest("GET", "/", nil)
	r.Header.Set("Accept-Encoding", "gzip")
	f(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte(strings.Repeat("a", 100)))
	})).ServeHTTP(w, r)
	if got := w.Header().Get("Content-Encoding"); got != "gzip" {
		t.Errorf("Content-Encoding %q", got)
	}
}

// A constructor panics for an argument that can only be a mistake, and names the argument.
func TestPanicsOfConstructors(t *testing.T) {
	plain := func(next http.Handler) http.Handler { return next }
	for want, call := range map[string]func(){
		"filters: NewChain: filter 1 is nil":                   func() { filters.NewChain(plain, nil) },
		"filters: Append: filter 0 is nil":                     func() { filters.NewChain(plain).Append(nil) },
		"filters: Observe: Metrics is nil":                     func() { filters.Observe(nil) },
		"filters: CombinedLog: the io.Writer is nil":           func() { filters.CombinedLog(nil) },
		"filters: ErrorPages: the function is nil":             func() { filters.ErrorPages(nil) },
		"filters: RefuseAmbiguous: unknown Ambiguity 0x100000": func() { filters.RefuseAmbiguous(filters.Semicolons | 1<<20) },
	} {
		func() {
			defer func() {
				if got := recover(); got != want {
					t.Errorf("panic %v, want %s", got, want)
				}
			}()
			call()
		}()
	}
}
