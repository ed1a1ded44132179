package proxy_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// A target of HTTP/2 that opens no window for an upload, and responds to pings, holds it for the group's WriteTimeout: 504.
// One that has responded may leave the upload alone.
func TestClosedWindow(t *testing.T) {
	const (
		window = 64 << 10
		bound  = time.Second
	)
	for name, test := range map[string]struct {
		target http.HandlerFunc
		want   int
	}{
		"no response": {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, http.StatusGatewayTimeout},
		"a response": {func(w http.ResponseWriter, _ *http.Request) {
			_ = http.NewResponseController(w).Flush()
			time.Sleep(3 * bound)
			_, _ = io.WriteString(w, "page")
		}, http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				t.Cleanup(func() { time.Sleep(time.Hour) }) // net/http's server lingers
				l := newPipes()
				target := wiretest.Server(&http.Server{Handler: test.target, ErrorLog: wiretest.Quiet(), Protocols: new(http.Protocols),
					HTTP2: &http.HTTP2Config{MaxReceiveBufferPerStream: window}})
				target.Protocols.SetUnencryptedHTTP2(true)
				go func() { _ = target.Serve(l) }()
				t.Cleanup(func() { _ = target.Close() })
				group := groupAt(t, upstream.Options{Protocol: upstream.H2C, WriteTimeout: bound, HeaderTimeout: -1, DialContext: l.dial}, "192.0.2.1:80")
				front := newPipes()
				gateway := wiretest.Server(&http.Server{Handler: newProxy(t, anyPath, proxy.Options{Upstream: group, Transport: group.Transport()})})
				go func() { _ = gateway.Serve(front) }()
				t.Cleanup(func() { _ = gateway.Close() })
				c, err := front.dial(t.Context(), "tcp", "gateway.test:80")
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				_ = c.SetDeadline(time.Now().Add(time.Hour))
				go func() { // which the gateway may cut: net/http's client would then report that, in place of the response
					_, _ = fmt.Fprintf(c, "PUT / HTTP/1.1\r\nHost: gateway.test\r\nContent-Length: %d\r\n\r\n", 4*window)
					_, _ = io.CopyN(c, zeros{}, 4*window)
				}()
				resp, err := http.ReadResponse(bufio.NewReader(c), nil)
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				if resp.StatusCode != test.want {
					t.Errorf("status %d, want %d", resp.StatusCode, test.want)
				}
				if content, err := io.ReadAll(resp.Body); err != nil || test.want == http.StatusOK && string(content) != "page" {
					t.Errorf("content %q, %v", content, err)
				}
			})
		})
	}
}
