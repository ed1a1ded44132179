package proxy_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// TestTransportWithoutATraceClosesTheBody: a transport without httptrace may close a body that it reads, since its target refuses the
// rest, and return its response a moment later.
func TestTransportWithoutATraceClosesTheBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport := roundTripper(func(r *http.Request) (*http.Response, error) {
			go func() { _, _ = io.Copy(io.Discard, r.Body) }()
			synctest.Wait()
			_ = r.Body.Close()
			time.Sleep(100 * time.Millisecond)
			if err := r.Context().Err(); err != nil {
				return nil, err
			}
			return &http.Response{StatusCode: http.StatusRequestEntityTooLarge, Body: http.NoBody}, nil
		})
		group := groupAt(t, upstream.Options{}, "192.0.2.1:80")
		p := newProxy(t, anyPath, proxy.Options{Upstream: group, Transport: transport})
		body, send := io.Pipe()
		go func() { _, _ = io.WriteString(send, "hello") }()
		w := httptest.NewRecorder()
		p.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "http://gateway.test/", body))
		if w.Code != http.StatusRequestEntityTooLarge {
			t.Errorf("status %d", w.Code)
		}
		_ = group.Close()
	})
}
