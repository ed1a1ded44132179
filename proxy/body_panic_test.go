package proxy_test

import (
	"io"
	"net/http"
	"testing"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// gappedBody is a filter's body that panics within its content, and continues after the gap when it is read again.
type gappedBody struct {
	io.Closer
	reads int
	gap   <-chan struct{} // closed when the second read may panic
}

func (b *gappedBody) Read(p []byte) (int, error) {
	switch b.reads++; b.reads {
	case 1:
		return copy(p, "hel"), nil
	case 2:
		<-b.gap
		panic("a bug")
	}
	return copy(p, "o"), io.EOF
}

// A body that has panicked for one target is not read on for another one, which would take it for a whole one.
func TestNoBodyBehindAPanic(t *testing.T) { onPaths(t, testNoBodyBehindAPanic) }
func testNoBodyBehindAPanic(t *testing.T, via path) {
	leaktest.Check(t)
	retried := make(chan struct{})
	busy := wiretest.Target(t, func(p *wiretest.Peer) {
		p.Header()
		p.Send("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n")
		p.Ended()
	})
	got := make(chan string, 1)
	other := wiretest.Target(t, func(p *wiretest.Peer) {
		p.Header()
		close(retried)
		got <- p.Ended()
	})
	p := newProxy(t, via, proxy.Options{
		Upstream: groupOf(t, upstream.Options{}, upstream.Target{Addr: busy}, upstream.Target{Addr: other, Backup: true}),
		Retry:    proxy.Retry{Statuses: []int{http.StatusServiceUnavailable}},
	})
	client := wiretest.Dial(t, wiretest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = &gappedBody{Closer: r.Body, gap: retried}
		p.ServeHTTP(w, r)
	})))
	client.Send("PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
	client.Ended()
	if body := wiretest.Await(t, got, "body"); body != "3\r\nhel\r\n" {
		t.Errorf("the other target got %q", body)
	}
}
