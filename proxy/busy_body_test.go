package proxy_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// A small body that no attempt has read is read after a response of the gateway's own: the client's connection is not
// reset under the response, and serves the next request.
func TestRefusalBeforeABody(t *testing.T) { onPaths(t, testRefusalBeforeABody) }
func testRefusalBeforeABody(t *testing.T, via path) {
	target := upstream.Target{Addr: "192.0.2.1:80", MaxConns: 1}
	for name, test := range map[string]struct {
		o       proxy.Options
		busy    bool // another request holds the target
		drained bool
		want    int
	}{
		"no target free": {busy: true, want: 503},
		"draining":       {drained: true, want: 503},
		"unsendable":     {o: proxy.Options{Rewrite: func(o *proxy.Outbound) { o.Out.URL.Scheme = "no" }}, want: 500},
		"a full buffer":  {o: proxy.Options{RequestBuffer: &proxy.Buffer{Memory: 2}}, want: 413},
	} {
		for _, framing := range []string{"Content-Length: 5\r\n\r\n|hello", "Transfer-Encoding: chunked\r\n\r\n|5\r\nhello\r\n0\r\n\r\n"} {
			t.Run(name+", "+framing[:7], func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					o := test.o
					over := make(chan struct{})
					defer close(over)
					o.Upstream = groupOf(t, upstream.Options{DialContext: func(context.Context, string, string) (net.Conn, error) {
						<-over
						return nil, net.ErrClosed
					}}, target)
					p := newProxy(t, via, o)
					if test.busy {
						ctx, cancel := context.WithCancel(t.Context())
						defer cancel()
						go func() {
							defer func() { _ = recover() }() // the abort of a client that has left
							p.ServeHTTP(discarding{}, plainRequest(ctx))
						}()
						synctest.Wait()
					}
					if test.drained {
						_ = p.Drain(t.Context())
					}
					client, far := net.Pipe()
					s := wiretest.Server(&http.Server{Handler: p, ErrorLog: wiretest.Quiet()})
					_ = s.Serve(wiretest.OneConn(far))
					defer func() { client.Close(); _ = s.Close() }()
					in := bufio.NewReader(client)
					header, body, _ := strings.Cut(framing, "|")
					for range 2 {
						if _, err := io.WriteString(client, "POST / HTTP/1.1\r\nHost: a\r\n"+header); err != nil {
							t.Fatal(err)
						}
						synctest.Wait() // what the gateway can do without the body, it has done
						sent := make(chan error, 1)
						go func() {
							_, err := io.WriteString(client, body)
							sent <- err
						}()
						resp, err := http.ReadResponse(in, nil)
						if err != nil {
							t.Fatalf("%v, the body: %v", err, <-sent)
						}
						_, err = io.Copy(io.Discard, resp.Body)
						if sent := <-sent; err != nil || sent != nil || resp.StatusCode != test.want || resp.Close {
							t.Errorf("response %s (%v), close %v, the body: %v", resp.Status, err, resp.Close, sent)
						}
						if resp.Close {
							return
						}
					}
				})
			})
		}
	}
}

func plainRequest(ctx context.Context) *http.Request {
	r, err := http.NewRequestWithContext(ctx, "GET", "http://a/", nil)
	if err != nil {
		panic(err)
	}
	return r
}

// discarding is a writer of which nothing is seen.
type discarding struct{}

func (discarding) Header() http.Header         { return http.Header{} }
func (discarding) Write(p []byte) (int, error) { return len(p), nil }
func (discarding) WriteHeader(int)             {}
