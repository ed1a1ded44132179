package proxy_test

import (
	"context"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// A client that leaves ends an exchange whose target has begun to respond to Expect and goes silent, also where no time
// of the gateway's would.
func TestClientLeavesASilentTarget(t *testing.T) { onPathsParallel(t, testClientLeavesASilentTarget) }
func testClientLeavesASilentTarget(t *testing.T, via path) {
	type test struct{ name, begun string }
	tests := []test{
		{"within a 100", "HTTP/1.1 100 Con"},
		{"within a final header", "HTTP/1.1 403 F"},
	}
	for name, front := range clientFronts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			atOnce(t, tests, func(c test) string { return c.name }, func(t *testing.T, test test) {
				var failed failures
				begun, ended := make(chan struct{}), make(chan string, 1)
				target := wiretest.Target(t, func(p *wiretest.Peer) {
					p.Header()
					p.Send(test.begun)
					close(begun)
					ended <- p.Ended()
				})
				p := newProxy(t, via, proxy.Options{Upstream: groupAt(t, upstream.Options{HeaderTimeout: -1}, target), OnError: failed.add})
				client, url := front(t, p)
				content, send := io.Pipe() // whose body never comes
				defer send.Close()
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				r, err := http.NewRequestWithContext(ctx, "POST", url, content)
				if err != nil {
					t.Fatal(err)
				}
				r.Header.Set("Expect", "100-continue")
				go func() {
					<-begun
					leave()
					send.CloseWithError(context.Canceled) // net/http's client waits for it
				}()
				if resp, err := client.Do(r); err == nil {
					resp.Body.Close()
					t.Errorf("the client got %s", resp.Status)
				}
				if rest := wiretest.Await(t, ended, "end of the exchange"); rest != "" {
					t.Errorf("the target got %q", rest)
				}
				failed.await(t)
				if e := failed.only(t); e.Kind != culvert.ClientGone {
					t.Errorf("failure %#v", e)
				}
				drained, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				if err := p.Drain(drained); err != nil {
					t.Errorf("drain: %v", err)
				}
			})
		})
	}
}
