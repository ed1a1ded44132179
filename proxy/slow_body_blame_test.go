package proxy_test

import (
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

// A client that does not send the rest of its body is too slow, and has not gone, also behind the beginning of the
// response: net/http's server cancels the request as well when the time for the body is over.
func TestSlowBodyBehindAResponse(t *testing.T) { onPaths(t, testSlowBodyBehindAResponse) }
func testSlowBodyBehindAResponse(t *testing.T, via path) {
	for name, request := range map[string]string{
		"a rest":  "POST / HTTP/1.1\r\nHost: gateway.test\r\nContent-Length: 10\r\n\r\nhello",
		"a chunk": "POST / HTTP/1.1\r\nHost: gateway.test\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				group := groupAt(t, upstream.Options{Protocol: upstream.HTTP1, DialContext: pipeTo(func(c net.Conn) {
					go func() { _, _ = io.Copy(io.Discard, c) }()
					time.Sleep(100 * time.Millisecond)
					_, _ = io.WriteString(c, "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n")
					time.Sleep(time.Minute)
				})}, "192.0.2.1:80")
				var failure error
				p := newProxy(t, via, proxy.Options{Upstream: group, ReadTimeout: time.Second, OnError: func(_ *http.Request, err *culvert.Error) { failure = err }})
				near, far := net.Pipe()
				s := wiretest.Server(&http.Server{Handler: p})
				go func() { _ = s.Serve(wiretest.OneConn(far)) }()
				go func() { _, _ = io.WriteString(near, request) }()
				got, _ := io.ReadAll(near)
				near.Close()
				_ = s.Close()
				_ = p.Drain(context.Background())
				_ = group.Close()
				time.Sleep(time.Hour) // the target ends
				if e := (*culvert.Error)(nil); !errors.As(failure, &e) || e.Kind != culvert.BodyTooSlow {
					t.Errorf("%v behind %q", failure, got)
				}
			})
		})
	}
}
