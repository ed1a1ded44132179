package proxy_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
	"github.com/culvert-go/culvert/wsupgrade"
)

// A refusal behind the end of a request's body leaves the connection as it is: the ErrorHandler's request is not
// cancelled, and the client's next request follows.
func TestRefusalBehindABody(t *testing.T) { onPaths(t, testRefusalBehindABody) }
func testRefusalBehindABody(t *testing.T, via path) {
	const (
		sized   = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"
		chunked = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
		upgrade = "POST / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: tcp\r\nContent-Length: 5\r\n\r\nhello"
	)
	invalid := func(o *proxy.Outbound) { o.Out.Header.Set("X-User", "a\nb") }
	buffer := &proxy.Buffer{}
	for name, test := range map[string]struct {
		o       proxy.Options
		request string
		replace bool // a filter has read the body
	}{
		"held":                 {proxy.Options{RequestBuffer: buffer, Rewrite: invalid}, sized, false},
		"held, chunked":        {proxy.Options{RequestBuffer: buffer, Rewrite: invalid}, chunked, false},
		"held, no descriptor":  {proxy.Options{RequestBuffer: buffer}, sized, false},
		"small, no descriptor": {proxy.Options{}, sized, false},
		"read by a filter":     {proxy.Options{Rewrite: invalid, RequestBuffer: buffer}, chunked, true},
		"of an upgrade":        {proxy.Options{Retry: proxy.Retry{Errors: true, NonIdempotent: true}}, upgrade, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := test.o
				dials := 0
				o.Upstream = groupOf(t, upstream.Options{DialContext: func(context.Context, string, string) (net.Conn, error) {
					if dials++; test.request == upgrade && dials%2 == 1 { // it is read by an attempt before
						near, far := net.Pipe()
						go readAndClose(far)
						return near, nil
					}
					return nil, &net.OpError{Op: "dial", Err: os.NewSyscallError("socket", syscall.EMFILE)}
				}}, upstream.Target{Addr: "192.0.2.1:80", MaxFails: -1}, upstream.Target{Addr: "192.0.2.2:80", MaxFails: -1})
				var err error
				if o.Upgrades, err = wsupgrade.New(wsupgrade.Options{Dial: o.Upstream.(*upstream.Group).Dial, Protocols: []string{"tcp"}}); err != nil {
					t.Fatal(err)
				}
				refused := 0
				o.ErrorHandler = func(w http.ResponseWriter, r *http.Request, e *culvert.Error) {
					refused++
					synctest.Wait() // net/http's goroutine that notices a client which leaves
					if e.Kind != culvert.Internal || r.Context().Err() != nil {
						t.Errorf("%v, and the request's context: %v", e, context.Cause(r.Context()))
					}
					w.WriteHeader(e.Status())
				}
				p := newProxy(t, via, o)
				client, far := net.Pipe()
				s := wiretest.Server(&http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if test.replace {
						body, _ := io.ReadAll(r.Body)
						r.Body = io.NopCloser(strings.NewReader(string(body)))
					}
					p.ServeHTTP(w, r)
				})})
				go func() { _ = s.Serve(wiretest.OneConn(far)) }()
				defer func() {
					client.Close()
					_ = s.Close()
					_ = p.Drain(context.Background())
					_ = o.Upstream.(*upstream.Group).Close()
				}()
				in := bufio.NewReader(client)
				for range 2 {
					if _, err := io.WriteString(client, test.request); err != nil {
						t.Fatal(err)
					}
					resp, err := http.ReadResponse(in, nil)
					if err != nil {
						t.Fatal(err)
					}
					if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != 500 || resp.Close {
						t.Errorf("response %s, close %v, body %v", resp.Status, resp.Close, err)
					}
				}
				if refused != 2 {
					t.Errorf("refused %d of 2", refused)
				}
			})
		})
	}
}

// readAndClose is a target that reads a request and does not respond.
func readAndClose(c net.Conn) {
	defer c.Close()
	if r, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
		_, _ = io.Copy(io.Discard, r.Body)
	}
}
