package proxy_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// However a tunnel ends, and however long it was, its target is given back once, as one that has switched protocols in the
// time to the 101.
func TestOutcomeOfATunnel(t *testing.T) { onPaths(t, testOutcomeOfATunnel) }
func testOutcomeOfATunnel(t *testing.T, via path) {
	const accepted = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"
	for _, detach := range []bool{false, true} {
		for _, ends := range []string{"client", "target", "both"} {
			for _, late := range []bool{false, true} {
				t.Run(fmt.Sprintf("detached %v, %s ends, late %v", detach, ends, late), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						targetEnds := make(chan struct{})
						group := groupOf(t, upstream.Options{FailLatency: time.Second, DialContext: pipeTo(func(c net.Conn) {
							if _, err := http.ReadRequest(bufio.NewReader(c)); err != nil {
								return
							}
							if late {
								time.Sleep(2 * time.Second)
							}
							_, _ = io.WriteString(c, accepted)
							go func() { _, _ = io.Copy(io.Discard, c) }()
							<-targetEnds
						})}, upstream.Target{Addr: "192.0.2.1:80", MaxFails: 5, FailTimeout: 24 * time.Hour})
						p := newProxy(t, via, proxy.Options{Upstream: group, DetachTunnels: detach})
						client, far := net.Pipe()
						s := wiretest.Server(&http.Server{Handler: p})
						go func() { _ = s.Serve(wiretest.OneConn(far)) }()
						defer func() {
							client.Close()
							_ = s.Close()
							_ = group.Close()
						}()
						if _, err := io.WriteString(client, handshake); err != nil {
							t.Fatal(err)
						}
						if resp, err := http.ReadResponse(bufio.NewReader(client), nil); err != nil || resp.StatusCode != 101 {
							t.Fatalf("response %v, error %v", resp, err)
						}
						go func() { _, _ = io.Copy(io.Discard, client) }()
						time.Sleep(time.Hour)
						if n := group.InFlight(); n != 1 {
							t.Errorf("%d in flight", n)
						}
						switch ends {
						case "client":
							client.Close()
						case "target":
							close(targetEnds)
						case "both":
							close(targetEnds)
							client.Close()
						}
						if err := p.Drain(context.Background()); err != nil {
							t.Error(err)
						}
						if ends == "client" {
							close(targetEnds)
						}
						want := 0
						if late {
							want = 1
						}
						if fails, n := failsOf(group), group.InFlight(); fails != want || n != 0 {
							t.Errorf("%d failures, want %d, and %d in flight", fails, want, n)
						}
					})
				})
			}
		}
	}
}
