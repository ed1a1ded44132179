package proxy_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// A client that takes long to accept an interim response uses up the time of the exchange, or of the header: no failure
// of its target, which has responded long before.
func TestBlameForAnInterimResponse(t *testing.T) { onPaths(t, testBlameForAnInterimResponse) }
func testBlameForAnInterimResponse(t *testing.T, via path) {
	for name, test := range map[string]struct {
		o             proxy.Options
		headerTimeout time.Duration
		kinds         []culvert.ErrorKind // of the failure, no failure is 0
	}{
		"the time of the exchange": {proxy.Options{Timeout: 5 * time.Second}, time.Hour, []culvert.ErrorKind{0, culvert.ClientGone}},
		"the time of the header":   {proxy.Options{}, 5 * time.Second, []culvert.ErrorKind{0}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				group := groupOf(t, upstream.Options{HeaderTimeout: test.headerTimeout, DialContext: func(context.Context, string, string) (net.Conn, error) {
					near, far := net.Pipe()
					go hintAndRespond(far)
					return near, nil
				}}, upstream.Target{Addr: "192.0.2.1:80", FailTimeout: time.Hour})
				o := test.o
				o.Upstream = group
				var failed failures
				o.OnError = failed.add
				p := newProxy(t, via, o)
				near, far := net.Pipe()
				s := wiretest.Server(&http.Server{Handler: p})
				go func() { _ = s.Serve(wiretest.OneConn(far)) }()
				if _, err := io.WriteString(near, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
					t.Fatal(err)
				}
				time.Sleep(30 * time.Second) // and reads nothing
				_ = near.SetReadDeadline(time.Now().Add(time.Minute))
				_, _ = io.Copy(io.Discard, near)
				near.Close()
				synctest.Wait()
				for target := range group.Targets() {
					if target.Fails > 0 || !target.Healthy {
						t.Errorf("%d failures are counted against the target", target.Fails)
					}
				}
				checkKind(t, &failed, test.kinds)
				_ = s.Close()
				_ = p.Drain(context.Background())
				_ = group.Close()
				time.Sleep(10 * time.Minute) // the target ends
			})
		})
	}
}

// checkKind checks that the only failure, if there is one, is of one of the kinds.
func checkKind(t *testing.T, failed *failures, kinds []culvert.ErrorKind) {
	t.Helper()
	failed.mu.Lock()
	defer failed.mu.Unlock()
	got := culvert.ErrorKind(0)
	for _, err := range failed.all {
		got = err.Kind
	}
	if !slices.Contains(kinds, got) {
		t.Errorf("failures: %v", failed.all)
	}
}

// hintAndRespond responds to a request at once, with an interim response and a final one.
func hintAndRespond(c net.Conn) {
	defer c.Close()
	if _, err := c.Read(make([]byte, 1<<10)); err != nil {
		return
	}
	_, _ = io.WriteString(c, "HTTP/1.1 103 Early Hints\r\n\r\n")
	_, _ = io.WriteString(c, "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
}
