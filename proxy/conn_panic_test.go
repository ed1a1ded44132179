package proxy_test

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// A connection of the program's that panics while a body is sent over it fails the request, and neither ends the program nor
// counts against the target.
func TestConnPanicsUnderABody(t *testing.T) {
	leaktest.Check(t)
	before := slog.Default()
	slog.SetDefault(slog.New(slog.DiscardHandler))
	t.Cleanup(func() { slog.SetDefault(before) })
	var f failures
	g := groupAt(t, upstream.Options{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, addr)
		writes := 0
		return wiretest.Hooked{Conn: c, Called: func(method string) {
			if method != "Write" {
				return
			}
			if writes++; writes > 1 { // the first one is the header, perhaps with the body's first bytes
				panic("a fault of the program")
			}
		}}, err
	}}, echoTarget(t, upstream.HTTP1))
	p := wiretest.Dial(t, wiretest.Serve(t, newProxy(t, ownExchange, proxy.Options{Upstream: g, OnError: f.add})))
	p.Send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n10000\r\n" + strings.Repeat("x", 0x10000) + "\r\n0\r\n\r\n")
	p.Status(http.StatusInternalServerError)
	if e := f.only(t); e.Kind != culvert.Internal || e.TargetSide() {
		t.Errorf("failure %#v", e)
	}
}
