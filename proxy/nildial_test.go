package proxy_test

import (
	"context"
	"net"
	"net/http"
	"testing"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// A DialContext that gives neither a connection nor an error is a dial error, behind which another target gets the request.
func TestDialContextWithoutAConnection(t *testing.T) { onPaths(t, testDialContextWithoutAConnection) }
func testDialContextWithoutAConnection(t *testing.T, via path) {
	for name, request := range map[string]string{
		"GET":       "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
		"a body":    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
		"WebSocket": "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
	} {
		for _, protocol := range []upstream.Protocol{upstream.HTTP1, upstream.H2C} {
			t.Run(name, func(t *testing.T) {
				leaktest.Check(t)
				spoken := protocol
				if name == "WebSocket" { // upgrades are of HTTP/1.1
					spoken = upstream.HTTP1
				}
				target := echoTarget(t, spoken)
				dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
					if addr != target {
						return nil, nil
					}
					return new(net.Dialer).DialContext(ctx, network, addr)
				}
				var f failures
				for _, list := range [][]string{{"a.invalid:1"}, {"a.invalid:1", target}} {
					g := groupAt(t, upstream.Options{Protocol: protocol, Balance: upstream.First(), DialContext: dial}, list...)
					p := wiretest.Dial(t, wiretest.Serve(t, newProxy(t, via, proxy.Options{Upstream: g, OnError: f.add})))
					p.Send(request)
					if len(list) == 2 {
						p.Status(http.StatusOK)
						continue
					}
					p.Status(http.StatusBadGateway)
					if e := f.only(t); e.Kind != culvert.DialFailed || e.BytesSent || e.Err.Error() != "upstream: Options.DialContext returned (nil, nil)" {
						t.Errorf("failure %#v", e)
					}
				}
			})
		}
	}
}
