package proxy_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
	"github.com/culvert-go/culvert/wsupgrade"
)

// TestNegativeTimesAreNoBound: with negative times each party may take an hour: a dial, the client for its body, the target for its
// header and its content, the next request for its connection and for its place, and a handshake.
func TestNegativeTimesAreNoBound(t *testing.T) { onPaths(t, testNegativeTimesAreNoBound) }
func testNegativeTimesAreNoBound(t *testing.T, via path) {
	for name, protocol := range map[string]upstream.Protocol{"HTTP/1.1": upstream.HTTP1, "HTTP/2": upstream.H2C} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var protocols http.Protocols
				protocols.SetHTTP1(true)
				protocols.SetUnencryptedHTTP2(protocol == upstream.H2C)
				target := wiretest.Server(&http.Server{Protocols: &protocols, ErrorLog: wiretest.Quiet(), Handler: http.HandlerFunc(hourly)})
				var dials atomic.Int32
				dial := func(context.Context, string, string) (net.Conn, error) {
					dials.Add(1)
					time.Sleep(time.Hour)
					near, far := net.Pipe()
					go func() { _ = target.Serve(wiretest.OneConn(far)) }()
					return near, nil
				}
				group := groupOf(t, upstream.Options{Protocol: protocol, DialContext: dial, Queue: 1, QueueTimeout: -1, FailLatency: -1, DialTimeout: -1,
					WriteTimeout: -1, HeaderTimeout: -1, PingInterval: -1, IdleTimeout: -1, MaxConnAge: -1}, upstream.Target{Addr: "192.0.2.1:80", MaxConns: 1})
				upgrades, err := wsupgrade.New(wsupgrade.Options{Dial: dial, HandshakeTimeout: -1, HeaderTimeout: -1, IdleTimeout: -1, MaxLifetime: -1, PingInterval: -1})
				if err != nil {
					t.Fatal(err)
				}
				p := newProxy(t, via, proxy.Options{Upstream: group, Upgrades: upgrades, Timeout: -1, BodyTimeout: -1, ReadTimeout: -1, WriteTimeout: -1, Retry: proxy.Retry{Timeout: -1}})
				first, second, third := dialHandler(p), dialHandler(p), dialHandler(p)
				go func() {
					_, _ = io.WriteString(first, "POST /1 HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nab")
					time.Sleep(time.Hour)
					_, _ = io.WriteString(first, "cd")
				}()
				synctest.Wait()
				go func() { _, _ = io.WriteString(second, "POST /2 HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nef") }()
				for _, test := range []struct {
					conn net.Conn
					want string
				}{{first, "1 abcd"}, {second, "2 ef"}} {
					resp, err := http.ReadResponse(bufio.NewReader(test.conn), nil)
					if err != nil {
						t.Fatal(err)
					}
					if body, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != 200 || string(body) != test.want {
						t.Errorf("%d %q, %v, want %q", resp.StatusCode, body, err, test.want)
					}
					test.conn.Close()
					time.Sleep(time.Hour) // the connection to the target is idle
				}
				if n := dials.Load(); n != 1 {
					t.Errorf("%d dials, want 1", n)
				}
				go func() {
					_, _ = io.WriteString(third, "GET /3 HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
				}()
				resp, err := http.ReadResponse(bufio.NewReader(third), nil)
				if err != nil || resp.StatusCode != http.StatusForbidden {
					t.Errorf("the handshake: %v, %v", resp, err)
				}
				third.Close()
				_ = p.Drain(context.Background())
				_ = target.Close()
			})
		})
	}
}

// hourly responds after an hour, and takes another one for its content. It refuses upgrades.
func hourly(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	time.Sleep(time.Hour)
	if r.Header.Get("Upgrade") != "" {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	_ = http.NewResponseController(w).Flush()
	time.Sleep(time.Hour)
	_, _ = io.WriteString(w, strings.TrimPrefix(r.URL.Path, "/")+" "+string(body))
}

// dialHandler serves h on one end of a connection in memory, and returns the other one.
func dialHandler(h http.Handler) net.Conn {
	near, far := net.Pipe()
	s := wiretest.Server(&http.Server{Handler: h, ErrorLog: wiretest.Quiet()})
	go func() { _ = s.Serve(wiretest.OneConn(far)) }()
	return near
}

// A request is retried however long it has taken, if Retry.Timeout is negative.
func TestRetryWithoutATimeout(t *testing.T) { onPaths(t, testRetryWithoutATimeout) }
func testRetryWithoutATimeout(t *testing.T, via path) {
	good := targetOver(t, func(http.ResponseWriter, *http.Request) {})
	group := groupAt(t, upstream.Options{}, wiretest.Unused(t), good)
	p := newProxy(t, via, proxy.Options{Upstream: group, Retry: proxy.Retry{Timeout: -1}})
	for range 2 {
		client := wiretest.Dial(t, wiretest.Serve(t, p))
		client.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		client.Status(200)
	}
}
