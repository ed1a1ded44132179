package proxy_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// TestTimeOverBehindALeftUpload: where the time of a request ends while its target does not accept what was kept of the body, that
// target is to blame, though a read which the attempt before has left still awaits the client. A target that has accepted all of it
// waits for the client itself.
func TestTimeOverBehindALeftUpload(t *testing.T) { onPaths(t, testTimeOverBehindALeftUpload) }
func testTimeOverBehindALeftUpload(t *testing.T, via path) {
	const sent = 48 << 10 // of a body, more than a transport holds back before it writes
	serve := func(accepts int, response string) func(net.Conn) {
		return func(c net.Conn) {
			if r, err := http.ReadRequest(bufio.NewReader(c)); accepts > 0 && err == nil {
				_, err = io.CopyN(io.Discard, r.Body, int64(accepts))
				if err == nil {
					_, _ = io.WriteString(c, response)
				}
			}
			time.Sleep(time.Minute)
		}
	}
	const dropped = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"
	whole := proxy.Options{Timeout: 10 * time.Second}
	for name, test := range map[string]struct {
		o       proxy.Options
		filter  bool // has the time in place of o
		accepts int  // by the second target
		kind    culvert.ErrorKind
		status  string
		fails   int
	}{
		"target":         {whole, false, 1 << 10, culvert.Timeout, "504", 1},
		"target, filter": {proxy.Options{}, true, 1 << 10, culvert.Timeout, "504", 1},
		"client":         {whole, false, sent, culvert.BodyTooSlow, "408", 0},
		"client, filter": {proxy.Options{}, true, sent, culvert.BodyTooSlow, "408", 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				first, second := pipeTo(serve(sent, dropped)), pipeTo(serve(test.accepts, ""))
				group := groupOf(t, upstream.Options{Protocol: upstream.HTTP1, Balance: upstream.First(),
					DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
						if addr == "192.0.2.1:80" {
							return first(ctx, network, addr)
						}
						return second(ctx, network, addr)
					}}, upstream.Target{Addr: "192.0.2.1:80"}, upstream.Target{Addr: "192.0.2.2:80", MaxFails: 2, FailTimeout: time.Hour})
				var failure error
				o := test.o
				o.Upstream, o.Retry = group, proxy.Retry{Statuses: []int{503}, NonIdempotent: true}
				o.OnError = func(_ *http.Request, err *culvert.Error) { failure = err }
				p := newProxy(t, via, o)
				h := http.Handler(p)
				if test.filter {
					limit, err := filters.Timeout(10 * time.Second)
					if err != nil {
						t.Fatal(err)
					}
					h = limit(p)
				}
				near, far := net.Pipe()
				s := wiretest.Server(&http.Server{Handler: h})
				go func() { _ = s.Serve(wiretest.OneConn(far)) }()
				go func() {
					_, _ = io.WriteString(near, "POST / HTTP/1.1\r\nHost: gateway.test\r\nContent-Length: 1000000\r\n\r\n"+strings.Repeat("a", sent))
				}()
				status, _ := bufio.NewReader(near).ReadString('\r')
				near.Close()
				_ = s.Close()
				_ = p.Drain(context.Background())
				if e := (*culvert.Error)(nil); !errors.As(failure, &e) || e.Kind != test.kind || !strings.Contains(status, test.status) {
					t.Errorf("%v, %q", failure, status)
				}
				for target := range group.Targets() {
					if target.Target.Addr == "192.0.2.2:80" && int(target.Fails) != test.fails {
						t.Errorf("%d failures are counted against the second target, want %d", target.Fails, test.fails)
					}
				}
				_ = group.Close()
				time.Sleep(time.Hour) // the targets end
			})
		})
	}
}
