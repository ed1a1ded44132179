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
	"time"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// The server's WriteTimeout bounds what a handler writes that responds in the target's place, also behind an interim
// response, which has its own time.
func TestServersTimeoutBehindAnInterimResponse(t *testing.T) {
	onPaths(t, testServersTimeoutBehindAnInterimResponse)
}
func testServersTimeoutBehindAnInterimResponse(t *testing.T, via path) {
	for name, test := range map[string]struct{ request, interim, want string }{
		"none":         {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "", ""},
		"103":          {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n", "103 Early Hints"},
		"100-continue": {"PUT / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n", "HTTP/1.1 100 Continue\r\n\r\n", "100 Continue"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				leaktest.Check(t)
				group := groupOf(t, upstream.Options{DialContext: func(context.Context, string, string) (net.Conn, error) {
					near, far := net.Pipe()
					go func() {
						defer far.Close()
						in := bufio.NewReader(far)
						for line := ""; line != "\r\n"; {
							line, _ = in.ReadString('\n')
						}
						_, _ = io.WriteString(far, test.interim)
						if strings.HasPrefix(test.request, "PUT") {
							_, _ = in.ReadByte()
						}
						_, _ = io.WriteString(far, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
						_, _ = io.Copy(io.Discard, in)
					}()
					return near, nil
				}}, upstream.Target{Addr: "192.0.2.1:80"})
				p := newProxy(t, via, proxy.Options{Upstream: group, ModifyResponse: func(a *proxy.Response) {
					a.ServeInstead(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
						_, _ = io.WriteString(w, strings.Repeat("x", 100<<10))
					}))
				}})
				client, far := net.Pipe()
				left := make(chan time.Time, 1)
				s := wiretest.Server(&http.Server{WriteTimeout: 5 * time.Second, ErrorLog: wiretest.Quiet(), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					defer func() { left <- time.Now() }()
					p.ServeHTTP(w, r)
				})})
				_ = s.Serve(wiretest.OneConn(far))
				defer func() { client.Close(); _ = s.Close(); _ = group.Close() }()
				begun := time.Now()
				if _, err := io.WriteString(client, test.request); err != nil {
					t.Fatal(err)
				}
				in := bufio.NewReaderSize(client, 16)
				for line := "HTTP"; test.want != "" && line != "\r\n"; {
					var err error
					if line, err = in.ReadString('\n'); err != nil {
						t.Fatal(err)
					}
				}
				if strings.HasPrefix(test.request, "PUT") {
					_, _ = io.WriteString(client, "x")
				}
				time.Sleep(time.Hour) // nothing more is accepted
				select {
				case at := <-left:
					if took := at.Sub(begun); took > 6*time.Second {
						t.Errorf("the handler has ended after %v", took)
					}
				default:
					t.Error("the handler is still running")
				}
			})
		})
	}
}
