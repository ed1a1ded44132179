package proxy_test

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// A 304 may have the Content-Length of the response that it stands for (RFC 9110 section 8.6), and has no body: net/http's
// HTTP/2 client gives it one all the same, which can't be read.
func TestHTTP2NotModifiedWithALength(t *testing.T) { onPaths(t, testHTTP2NotModifiedWithALength) }
func testHTTP2NotModifiedWithALength(t *testing.T, via path) {
	target := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "5")
		w.WriteHeader(http.StatusNotModified)
	})
	for name, serve := range map[string]func(*testing.T, http.Handler) *httptest.Server{"HTTP/2": h2Server, "HTTP/1.1": h1Server} {
		t.Run(name, func(t *testing.T) {
			leaktest.Check(t)
			var failed failures
			group := groupAt(t, upstream.Options{Scheme: "https", Protocol: upstream.HTTP2, TLSConfig: &tls.Config{InsecureSkipVerify: true}},
				h2Server(t, target).Listener.Addr().String())
			gateway := serve(t, newProxy(t, via, proxy.Options{Upstream: group, OnError: failed.add}))
			t.Cleanup(gateway.Client().CloseIdleConnections)
			resp, err := gateway.Client().Get(gateway.URL)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if resp.StatusCode != http.StatusNotModified {
				t.Errorf("status %d", resp.StatusCode)
			}
			if len(failed.all) > 0 {
				t.Errorf("failures: %v", failed.all)
			}
			for target := range group.Targets() {
				if target.Fails > 0 {
					t.Errorf("%d failures are counted against the target", target.Fails)
				}
			}
		})
	}
}

// h1Server serves h over HTTP/1.1.
func h1Server(t *testing.T, h http.Handler) *httptest.Server {
	s := wiretest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}
