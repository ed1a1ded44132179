package proxy_test

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// A request waits for no stream of a connection to a target of HTTP/2 that has as many as the target allows (RFC 9113 section
// 5.1.2): it is sent over another connection. No bound but that of the whole exchange would end the wait.
func TestStreamsOfATarget(t *testing.T) { onPaths(t, testStreamsOfATarget) }
func testStreamsOfATarget(t *testing.T, via path) {
	leaktest.Check(t)
	arrived, freed := make(chan struct{}), make(chan struct{})
	free := sync.OnceFunc(func() { close(freed) })
	target := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/held" {
			close(arrived)
			<-freed
		}
		_, _ = w.Write([]byte("page"))
	}))
	target.Config.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: 1}
	target.Config.Protocols = new(http.Protocols)
	target.Config.Protocols.SetUnencryptedHTTP2(true)
	wiretest.Start(target)
	t.Cleanup(target.Close)
	t.Cleanup(free)
	p := newProxy(t, via, proxy.Options{Upstream: groupAt(t, upstream.Options{Protocol: upstream.H2C}, target.Listener.Addr().String())})
	addr := wiretest.Serve(t, p)

	first := wiretest.Dial(t, addr)
	first.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n") // behind which the transport knows the target's settings
	first.Status(http.StatusOK)
	first.Send("GET /held HTTP/1.1\r\nHost: a\r\n\r\n")
	wiretest.Await(t, arrived, "the request whose stream is held")
	second := wiretest.Dial(t, addr)
	second.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	second.Status(http.StatusOK)
	free()
	first.Status(http.StatusOK)
}
