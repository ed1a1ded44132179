package proxy_test

import (
	"context"
	"net"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// A request is retried after a target's timeout exactly if the policy names timeouts: an error is another thing.
func TestRetryAfterATimeout(t *testing.T) { onPaths(t, testRetryAfterATimeout) }
func testRetryAfterATimeout(t *testing.T, via path) {
	for name, test := range map[string]struct {
		retry proxy.Retry
		want  int
		dials string
	}{
		"timeouts":    {proxy.Retry{Errors: true, Timeouts: true}, 200, "192.0.2.1:80 192.0.2.2:80 "},
		"errors only": {proxy.Retry{Errors: true}, 504, "192.0.2.1:80 "},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				t.Cleanup(func() { time.Sleep(time.Hour) }) // all of them end
				stalls := pipeTo(func(c net.Conn) { wiretest.NewPeer(t, c).Ended() })
				responds := pipeTo(func(c net.Conn) {
					p := wiretest.NewPeer(t, c)
					p.Header()
					p.Send(ok)
				})
				dials := ""
				group := groupAt(t, upstream.Options{Balance: upstream.First(), HeaderTimeout: time.Second, DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
					if dials += addr + " "; addr == "192.0.2.1:80" {
						return stalls(ctx, network, addr)
					}
					return responds(ctx, network, addr)
				}}, "192.0.2.1:80", "192.0.2.2:80")
				p := newProxy(t, via, proxy.Options{Upstream: group, Retry: test.retry})
				w, start := httptest.NewRecorder(), time.Now()
				p.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/x", nil))
				if took := time.Since(start); w.Code != test.want || dials != test.dials || took < time.Second || took > 2*time.Second {
					t.Errorf("status %d after %v, dialled %q, want %d, %q", w.Code, took, dials, test.want, test.dials)
				}
			})
		})
	}
}
