package proxy_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
	"github.com/culvert-go/culvert/wsupgrade"
)

const switchingToTCP = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n"

// tunnelTo returns a proxy of upgrades to tcp, whose one target switches after a pause and ends, and its group, which counts a
// response that took a second as a failure.
func tunnelTo(t *testing.T, via path, detach bool, pause time.Duration) (*proxy.Proxy, *upstream.Group) {
	group := groupOf(t, upstream.Options{FailLatency: time.Second, DialContext: pipeTo(func(c net.Conn) {
		r, err := http.ReadRequest(bufio.NewReader(c))
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		time.Sleep(pause)
		_, _ = io.WriteString(c, switchingToTCP) // and ends
	})}, upstream.Target{Addr: "192.0.2.1:80", MaxFails: 5, FailTimeout: 24 * time.Hour})
	upgrades, err := wsupgrade.New(wsupgrade.Options{Protocols: []string{"tcp"}, Dial: group.Dial})
	if err != nil {
		t.Fatal(err)
	}
	return newProxy(t, via, proxy.Options{Upstream: group, Upgrades: upgrades, DetachTunnels: detach}), group
}

// checkOutcome awaits the end of p's tunnels and checks the failures of its target.
func checkOutcome(t *testing.T, p *proxy.Proxy, group *upstream.Group, want int) {
	t.Helper()
	if err := p.Drain(context.Background()); err != nil {
		t.Error(err)
	}
	if fails, n := failsOf(group), group.InFlight(); fails != want || n != 0 {
		t.Errorf("%d failures, want %d, and %d in flight", fails, want, n)
	}
}

// The time in which a client sends the body of its upgrade, or accepts the header that opens its tunnel, is not its target's.
func TestTunnelOfASlowClient(t *testing.T) { onPaths(t, testTunnelOfASlowClient) }
func testTunnelOfASlowClient(t *testing.T, via path) {
	for _, detach := range []bool{false, true} {
		for _, test := range []struct {
			name          string
			sends, reads  time.Duration // how long the client takes
			target        time.Duration
			failures      int
			contentLength int
		}{
			{"accepts late", 0, 2 * time.Second, 0, 0, 0},
			{"sends late", 2 * time.Second, 0, 0, 0, 4},
			{"both late", 2 * time.Second, 2 * time.Second, 0, 0, 4},
			{"sends late, and the target responds late", 2 * time.Second, 0, 2 * time.Second, 1, 4},
			{"accepts late, and the target responds late", 0, 2 * time.Second, 2 * time.Second, 1, 0},
		} {
			t.Run(fmt.Sprintf("%s, detached %v", test.name, detach), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p, group := tunnelTo(t, via, detach, test.target)
					client, far := net.Pipe()
					s := wiretest.Server(&http.Server{Handler: p})
					go func() { _ = s.Serve(wiretest.OneConn(far)) }()
					defer func() {
						client.Close()
						_ = s.Close()
						_ = group.Close()
					}()
					header := "POST / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n"
					if _, err := fmt.Fprintf(client, header+"Content-Length: %d\r\n\r\n", test.contentLength); err != nil {
						t.Fatal(err)
					}
					time.Sleep(test.sends)
					if test.contentLength > 0 {
						if _, err := io.WriteString(client, strings.Repeat("x", test.contentLength)); err != nil {
							t.Fatal(err)
						}
					}
					time.Sleep(test.target + test.reads)
					if resp, err := http.ReadResponse(bufio.NewReader(client), nil); err != nil || resp.StatusCode != 101 {
						t.Fatalf("response %v, error %v", resp, err)
					}
					client.Close()
					checkOutcome(t, p, group, test.failures)
				})
			})
		}
	}
}

// slowStream is the stream of an extended CONNECT whose client accepts the header late.
type slowStream struct{ *httptest.ResponseRecorder }

func (s slowStream) FlushError() error                { time.Sleep(2 * time.Second); return nil }
func (s slowStream) SetReadDeadline(time.Time) error  { return nil }
func (s slowStream) SetWriteDeadline(time.Time) error { return nil }
func (s slowStream) EnableFullDuplex() error          { return nil }

// TestTunnelOfASlowStream is TestTunnelOfASlowClient over HTTP/2.
func TestTunnelOfASlowStream(t *testing.T) { onPaths(t, testTunnelOfASlowStream) }
func testTunnelOfASlowStream(t *testing.T, via path) {
	for _, detach := range []bool{false, true} {
		for failures, pause := range []time.Duration{0, 2 * time.Second} {
			t.Run(fmt.Sprintf("detached %v, pause %v", detach, pause), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p, group := tunnelTo(t, via, detach, pause)
					defer func() { _ = group.Close() }()
					r := httptest.NewRequest(http.MethodConnect, "https://culvert.test/", http.NoBody)
					r.ProtoMajor, r.ProtoMinor, r.Proto, r.RequestURI = 2, 0, "HTTP/2.0", "/"
					r.Header = http.Header{":protocol": {"tcp"}}
					w := slowStream{httptest.NewRecorder()}
					p.ServeHTTP(w, r)
					if w.Code != http.StatusOK {
						t.Errorf("status %d: %s", w.Code, w.Body)
					}
					checkOutcome(t, p, group, failures)
				})
			})
		}
	}
}

// A target that had less than half of the time that ran out is not to blame: its client has sent the body of its upgrade
// meanwhile.
func TestTunnelBlameOfTheTime(t *testing.T) { onPaths(t, testTunnelBlameOfTheTime) }
func testTunnelBlameOfTheTime(t *testing.T, via path) {
	for _, detach := range []bool{false, true} {
		for sends, failures := range map[time.Duration]int{time.Second: 1, 3 * time.Second: 0, 6 * time.Second: 0} {
			t.Run(fmt.Sprintf("detached %v, sends for %v", detach, sends), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p, group := tunnelTo(t, via, detach, 8*time.Second)
					defer func() { _ = group.Close() }()
					ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
					defer cancel()
					r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", nil)
					r.Header = http.Header{"Connection": {"Upgrade"}, "Upgrade": {"tcp"}}
					body, client := io.Pipe()
					r.Body, r.ContentLength = body, 4
					go func() {
						time.Sleep(sends)
						_, _ = io.WriteString(client, "body")
						client.Close()
					}()
					w := httptest.NewRecorder()
					p.ServeHTTP(w, r)
					if w.Code != http.StatusGatewayTimeout {
						t.Errorf("status %d: %s", w.Code, w.Body)
					}
					checkOutcome(t, p, group, failures)
					time.Sleep(time.Minute) // the target ends
				})
			})
		}
	}
}
