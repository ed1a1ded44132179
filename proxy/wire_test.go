package proxy_test

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// upstream returns the upstream of o with targets at the addresses.
func groupAt(t testing.TB, o upstream.Options, addrs ...string) *upstream.Group {
	t.Helper()
	targets := make([]upstream.Target, len(addrs))
	for i, addr := range addrs {
		targets[i] = upstream.Target{Addr: addr}
	}
	return groupOf(t, o, targets...)
}

func groupOf(t testing.TB, o upstream.Options, targets ...upstream.Target) *upstream.Group {
	t.Helper()
	u, err := upstream.New(o, targets...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { u.Close() })
	return u
}

// gateway serves a proxy in front of the targets and returns its address.
func gateway(t testing.TB, via path, addrs ...string) string {
	t.Helper()
	return wiretest.Serve(t, newProxy(t, via, proxy.Options{Upstream: groupAt(t, upstream.Options{Name: "app"}, addrs...)}))
}

// failures collects the errors that OnError is called with.
type failures struct {
	mu  sync.Mutex
	all []*culvert.Error
}

func (f *failures) add(_ *http.Request, err *culvert.Error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all = append(f.all, err)
}

// await waits for the first failure: OnError may be called after the client has the response.
func (f *failures) await(t *testing.T) {
	t.Helper()
	for range 2000 {
		f.mu.Lock()
		n := len(f.all)
		f.mu.Unlock()
		if n > 0 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("no failure")
}

// only returns the one failure there was, an empty one if there were none.
func (f *failures) only(t *testing.T) *culvert.Error {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.all) != 1 {
		t.Errorf("failures %v, want one", f.all)
		return new(culvert.Error)
	}
	return f.all[0]
}

// recording returns a target that sends each request's header section to heads, responds with
// reply and serves the next request of the connection.
func recording(t testing.TB, reply string) (addr string, heads <-chan string) {
	c := make(chan string, 64)
	return wiretest.Target(t, func(p *wiretest.Peer) {
		for {
			if _, err := p.R.Peek(1); err != nil {
				return
			}
			c <- p.Header()
			p.Send(reply)
		}
	}), c
}

const ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
