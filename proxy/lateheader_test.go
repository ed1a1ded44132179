package proxy_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// TestHeaderBehindTheTime: a header that is received behind the end of the request's time, before the exchange has noticed
// that end, begins no response whose body is cut. One that has been received whole may be relayed.
func TestHeaderBehindTheTime(t *testing.T) { onPaths(t, testHeaderBehindTheTime) }
func testHeaderBehindTheTime(t *testing.T, via path) {
	for name, test := range map[string]struct {
		first, rest string
		statuses    map[int]string
	}{
		"a body follows":      {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "whole", map[int]string{504: "Gateway Timeout\n"}},
		"chunks follow":       {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "5\r\nwhole\r\n0\r\n\r\n", map[int]string{504: "Gateway Timeout\n"}},
		"nothing follows":     {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwhole", "", map[int]string{200: "whole", 504: "Gateway Timeout\n"}},
		"no body is declared": {"HTTP/1.1 204 No Content\r\n\r\n", "", map[int]string{204: "", 504: "Gateway Timeout\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				near, far := net.Pipe()
				group := groupOf(t, upstream.Options{DialContext: func(context.Context, string, string) (net.Conn, error) { return near, nil }}, upstream.Target{Addr: "192.0.2.1:80"})
				p := newProxy(t, via, proxy.Options{Upstream: group})
				go func() {
					defer far.Close()
					if _, err := far.Read(make([]byte, 1<<10)); err != nil {
						return
					}
					time.Sleep(7 * time.Millisecond) // the time ends after five, and is looked at after eight
					_, _ = io.WriteString(far, test.first)
					time.Sleep(time.Second)
					_, _ = io.WriteString(far, test.rest)
				}()
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
				defer cancel()
				w := httptest.NewRecorder()
				func() {
					defer func() {
						if v := recover(); v != nil {
							t.Errorf("the response is broken off: %v", v)
						}
					}()
					p.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://culvert.test/", nil).WithContext(ctx))
				}()
				if body, ok := test.statuses[w.Code]; !ok || w.Body.String() != body {
					t.Errorf("response %d %q", w.Code, w.Body)
				}
				_ = group.Close()
				time.Sleep(time.Minute)
			})
		})
	}
}
