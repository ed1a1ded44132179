package proxy_test

import (
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// Whether a request may reach two targets depends on what is sent, not on what Rewrite has made it of.
func TestRetryOfARewrittenRequest(t *testing.T) { onPaths(t, testRetryOfARewrittenRequest) }
func testRetryOfARewrittenRequest(t *testing.T, via path) {
	method := func(name string) func(*proxy.Outbound) {
		return func(o *proxy.Outbound) { o.Out.Method = name }
	}
	breaksOff := func(p *wiretest.Peer) { p.Header() }
	refuses := func(p *wiretest.Peer) {
		p.Header()
		p.Send("HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n")
		p.Ended()
	}
	for name, test := range map[string]struct {
		request string
		rewrite func(*proxy.Outbound)
		want    int32
	}{
		"GET to POST":         {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", method("POST"), 1},
		"POST to GET":         {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", method("GET"), 2},
		"key that is added":   {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", func(o *proxy.Outbound) { o.Out.Header.Set("Idempotency-Key", "1") }, 2},
		"key that is removed": {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nIdempotency-Key: 1\r\n\r\n", func(o *proxy.Outbound) { o.Out.Header.Del("Idempotency-Key") }, 1},
	} {
		for what, script := range map[string]func(*wiretest.Peer){"breaks off": breaksOff, "503": refuses} {
			t.Run(name+", "+what, func(t *testing.T) {
				var received atomic.Int32
				target := func() string {
					return wiretest.Target(t, func(p *wiretest.Peer) {
						received.Add(1)
						script(p)
					})
				}
				addr := wiretest.Serve(t, newProxy(t, via, proxy.Options{
					Upstream: groupAt(t, upstream.Options{}, target(), target()), Rewrite: test.rewrite,
					Retry: proxy.Retry{Errors: true, Statuses: []int{http.StatusServiceUnavailable}, Tries: 2},
				}))
				client := wiretest.Dial(t, addr)
				client.Send(test.request)
				client.Response(http.MethodGet)
				if n := received.Load(); n != test.want {
					t.Errorf("%d targets have received it, want %d", n, test.want)
				}
			})
		}
	}
}
