package proxy_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// TestSilentEmptyResponse: a target of HTTP/2 that leaves the stream of an empty response open is to blame for the BodyTimeout that
// ends it, also while the client is still sending.
func TestSilentEmptyResponse(t *testing.T) { onPaths(t, testSilentEmptyResponse) }
func testSilentEmptyResponse(t *testing.T, via path) {
	for name, request := range map[string]string{
		"no upload": "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
		"an upload": halfSent,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var protocols http.Protocols
				protocols.SetUnencryptedHTTP2(true)
				server := wiretest.Server(&http.Server{Protocols: &protocols, ErrorLog: wiretest.Quiet(), Handler: http.HandlerFunc(beginEmpty)})
				target := pipeTo(func(c net.Conn) {
					_ = server.Serve(wiretest.OneConn(c))
					time.Sleep(time.Hour) // Serve does not wait for the connection
				})
				group := groupOf(t, upstream.Options{Protocol: upstream.H2C, DialContext: target}, upstream.Target{Addr: "192.0.2.1:80", MaxFails: 2, FailTimeout: time.Hour})
				var failure error
				p := newProxy(t, via, proxy.Options{Upstream: group, BodyTimeout: 10 * time.Second, OnError: func(_ *http.Request, err *culvert.Error) { failure = err }})
				near, far := net.Pipe()
				s := wiretest.Server(&http.Server{Handler: p, ErrorLog: wiretest.Quiet()})
				go func() { _ = s.Serve(wiretest.OneConn(far)) }()
				go func() { _, _ = io.WriteString(near, request) }()
				status, _ := bufio.NewReader(near).ReadString('\r')
				near.Close()
				_ = s.Close()
				_ = p.Drain(context.Background())
				if e := (*culvert.Error)(nil); status != "HTTP/1.1 504 Gateway Timeout\r" || !errors.As(failure, &e) || e.Kind != culvert.Timeout || e.Target == "" {
					t.Errorf("%q, failure %v", status, failure)
				}
				for target := range group.Targets() {
					if target.Fails != 1 {
						t.Errorf("%d failures are counted against the target", target.Fails)
					}
				}
				_ = group.Close()
				_ = server.Close()
				time.Sleep(2 * time.Hour) // net/http's server lingers
			})
		})
	}
}

// beginEmpty responds with the header of an empty response, and leaves its stream open.
func beginEmpty(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength > 0 {
		_, _ = io.ReadFull(r.Body, make([]byte, 5))
	}
	w.Header().Set("Content-Length", "0")
	_ = http.NewResponseController(w).Flush()
	select {
	case <-r.Context().Done():
	case <-time.After(30 * time.Minute):
	}
}
