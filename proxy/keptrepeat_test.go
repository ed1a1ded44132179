package proxy_test

import (
	"testing"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// A target that ends a kept connection as it gets the next request gets that once more, if it may be repeated, though another target is
// free, and no failure counts against it. What may not be repeated is an error.
func TestKeptConnectionEndsBesideAFreeTarget(t *testing.T) {
	onPaths(t, testKeptConnectionEndsBesideAFreeTarget)
}
func testKeptConnectionEndsBesideAFreeTarget(t *testing.T, via path) {
	for name, test := range map[string]struct {
		request string
		status  int
		times   int // that the target gets it
	}{
		"GET":                   {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", 200, 2},
		"HEAD":                  {"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n", 200, 2},
		"DELETE":                {"DELETE / HTTP/1.1\r\nHost: a\r\n\r\n", 502, 1},
		"DELETE with key":       {"DELETE / HTTP/1.1\r\nHost: a\r\nIdempotency-Key: 1\r\n\r\n", 200, 2},
		"DELETE with empty key": {"DELETE / HTTP/1.1\r\nHost: a\r\nIdempotency-Key:\r\n\r\n", 502, 1},
		"POST":                  {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", 502, 1},
	} {
		t.Run(name, func(t *testing.T) {
			leaktest.Check(t)
			got := make(chan string, 8)
			target := wiretest.Target(t, func(p *wiretest.Peer) {
				for {
					if _, err := p.R.Peek(1); err != nil {
						return
					}
					got <- p.Header()
					if len(got) == 2 { // the request behind the first one
						p.Reset()
						return
					}
					p.Send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
				}
			})
			other, otherGot := recording(t, ok)
			g := groupAt(t, upstream.Options{Balance: upstream.First()}, target, other)
			client := wiretest.Dial(t, wiretest.Serve(t, newProxy(t, via, proxy.Options{Upstream: g})))
			client.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
			client.Status(200)
			client.Send(test.request)
			if resp, _ := client.Response(name); resp.StatusCode != test.status {
				t.Errorf("response %s", resp.Status)
			}
			if n := len(got) - 1; n != test.times || len(otherGot) > 0 {
				t.Errorf("the target got the request %d times, want %d, and the other one %d times", n, test.times, len(otherGot))
			}
			for s := range g.Targets() {
				if failed := test.status == 502 && s.Target.Addr == target; (s.Fails > 0) != failed {
					t.Errorf("%s has %d failures", s.Target.Addr, s.Fails)
				}
			}
		})
	}
}
