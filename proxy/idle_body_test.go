package proxy_test

import (
	"errors"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// hurried is a target that ends its first connection with last when that is idle for patience behind served requests. It
// closes decided then, or when the next request's header is there before.
func hurried(t *testing.T, served int, last string, patience time.Duration, decided chan<- struct{}) string {
	var connections atomic.Int32
	return wiretest.Target(t, func(p *wiretest.Peer) {
		hurries := connections.Add(1) == 1
		for n := 0; ; n++ {
			if hurries && n == served {
				_ = p.SetReadDeadline(time.Now().Add(patience))
			}
			r, err := http.ReadRequest(p.R)
			switch {
			case errors.Is(err, os.ErrDeadlineExceeded):
				p.Send(last)
				p.End()
				close(decided)
				_, _ = io.Copy(io.Discard, p.Conn)
				return
			case err != nil:
				return
			case hurries && n == served:
				_ = p.SetReadDeadline(time.Now().Add(20 * time.Second))
				close(decided)
			}
			body, _ := io.ReadAll(r.Body)
			p.Send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n" + string(body[:2]))
		}
	})
}

// What a target sends on a connection on which no request was sent, while the client's body is waited for, responds to
// none; and a connection that it closes then takes none (RFC 9112 sections 9.2 and 9.3.1).
func TestConnectionEndsWhileTheBodyIsAwaited(t *testing.T) {
	onPaths(t, testConnectionEndsWhileTheBodyIsAwaited)
}
func testConnectionEndsWhileTheBodyIsAwaited(t *testing.T, via path) {
	leaktest.Check(t)
	const timeout = "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
	type test struct {
		name   string
		served int
		last   string
		length int
	}
	atOnce(t, []test{
		{"closed, kept", 1, "", 4}, {"closed, fresh", 0, "", 4}, {"408, kept", 1, timeout, 4}, {"408, fresh", 0, timeout, 4},
		{"closed, kept, large", 1, "", 100000}, {"closed, fresh, large", 0, "", 100000},
		{"408, kept, large", 1, timeout, 100000}, {"408, fresh, large", 0, timeout, 100000},
	}, func(c test) string { return c.name }, func(t *testing.T, test test) {
		patience := soon
		if test.length > 4096 || via == httpTransport {
			patience = 10 * time.Second // the header does not wait for the body, and must not meet the target's end
		}
		var failed failures
		decided := make(chan struct{})
		group := groupOf(t, upstream.Options{}, upstream.Target{Addr: hurried(t, test.served, test.last, patience, decided), MaxFails: 1, FailTimeout: time.Hour})
		client := wiretest.Dial(t, wiretest.Serve(t, newProxy(t, via, proxy.Options{Upstream: group, OnError: failed.add})))
		const header = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: "
		for range test.served {
			client.Send(header + "2\r\n\r\nhi")
			client.Response("POST")
		}
		client.Send(header + strconv.Itoa(test.length) + "\r\n\r\n")
		wiretest.Await(t, decided, "decision")
		client.Send(strings.Repeat("body", test.length/4))
		if resp, body := client.Response("POST"); resp.StatusCode != 200 || body != "bo" {
			t.Errorf("%s, %q; failures %v", resp.Status, body, failed.all)
		}
		if n := failsOf(group); n != 0 {
			t.Errorf("%d failures of the target", n)
		}
	})
}
