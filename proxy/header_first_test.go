package proxy_test

import (
	"bufio"
	"context"
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

// The header of a request is sent before the first byte of its body has arrived from the client, also of methods that seldom
// have a body: a connection that was taken for a request and carries nothing of it yet may end, or its target may say
// meanwhile that it was idle for too long (408), and that is no response to the request.
func TestHeaderBeforeTheBody(t *testing.T) { onPaths(t, testHeaderBeforeTheBody) }
func testHeaderBeforeTheBody(t *testing.T, via path) {
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodDelete, http.MethodOptions, http.MethodPost, "PROPFIND"} {
		t.Run(method, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				type sight struct {
					after   time.Duration
					chunked bool
					body    string
				}
				seen := make(chan sight, 1)
				start := time.Now()
				group := groupAt(t, upstream.Options{Protocol: upstream.HTTP1, DialContext: pipeTo(func(c net.Conn) {
					r, err := http.ReadRequest(bufio.NewReader(c))
					if err != nil {
						t.Error(err)
						return
					}
					s := sight{after: time.Since(start), chunked: len(r.TransferEncoding) == 1 && r.TransferEncoding[0] == "chunked"}
					body, _ := io.ReadAll(r.Body)
					s.body = string(body)
					seen <- s
					_, _ = io.WriteString(c, "HTTP/1.1 204 No Content\r\n\r\n")
					time.Sleep(time.Minute)
				})}, "192.0.2.1:80")
				p := newProxy(t, via, proxy.Options{Upstream: group})
				var protocols http.Protocols
				protocols.SetUnencryptedHTTP2(true)
				near, far := net.Pipe()
				s := wiretest.Server(&http.Server{Handler: p, Protocols: &protocols})
				go func() { _ = s.Serve(wiretest.OneConn(far)) }()
				client := &http.Transport{Protocols: &protocols, DialContext: func(context.Context, string, string) (net.Conn, error) { return near, nil }}
				content, send := io.Pipe()
				go func() {
					time.Sleep(10 * time.Second)
					_, _ = io.WriteString(send, "late")
					send.Close()
				}()
				r, err := http.NewRequestWithContext(t.Context(), method, "http://gateway.test/", content)
				if err != nil {
					t.Fatal(err)
				}
				if resp, err := client.RoundTrip(r); err != nil {
					t.Error(err)
				} else if resp.Body.Close(); resp.StatusCode != http.StatusNoContent {
					t.Error(resp.Status)
				}
				if got := <-seen; got != (sight{0, true, "late"}) {
					t.Errorf("the target saw %+v", got)
				}
				client.CloseIdleConnections()
				near.Close()
				_ = s.Close()
				_ = p.Drain(context.Background())
				_ = group.Close()
				time.Sleep(time.Hour) // the target ends
			})
		})
	}
}
