package proxy_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// slowWriter is a response's writer whose client accepts an interim response when it is let, and not before.
type slowWriter struct {
	*httptest.ResponseRecorder
	interim, let chan struct{}
}

func (w slowWriter) WriteHeader(status int) {
	if status == http.StatusEarlyHints {
		close(w.interim)
		<-w.let
		return
	}
	w.ResponseRecorder.WriteHeader(status)
}

// hintingTarget is a target that speaks HTTP/2, and responds to /hint with an interim response first. It counts connections.
// Its final response to /hint?busy is a 503, behind interim: a response that is dropped takes interim responses with it that
// no client has begun to receive.
func hintingTarget(t *testing.T, conns *atomic.Int32, interim <-chan struct{}) (addr string) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hint" {
			w.WriteHeader(http.StatusEarlyHints)
		}
		if r.URL.Path == "/hint" && r.URL.RawQuery == "busy" {
			select {
			case <-interim:
			case <-r.Context().Done():
			}
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("page"))
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			conns.Add(1)
		}
	}
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	wiretest.Start(s)
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// A client that does not accept an interim response holds its own exchange, and not the others of the connection to a target
// that speaks HTTP/2.
func TestInterimResponseOfASharedConnection(t *testing.T) {
	onPaths(t, testInterimResponseOfASharedConnection)
}
func testInterimResponseOfASharedConnection(t *testing.T, via path) {
	leaktest.Check(t)
	var conns atomic.Int32
	p := newProxy(t, via, proxy.Options{Upstream: groupAt(t, upstream.Options{Protocol: upstream.H2C}, hintingTarget(t, &conns, nil))})
	client := wiretest.Dial(t, wiretest.Serve(t, p))
	page := func() {
		client.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		client.Status(http.StatusOK)
	}
	// net/http's transport lends a new connection to its first request before it keeps it for others.
	kept := int32(-1)
	for conns.Load() > kept {
		kept = conns.Load()
		page()
	}
	slow := slowWriter{httptest.NewRecorder(), make(chan struct{}), make(chan struct{})}
	let := sync.OnceFunc(func() { close(slow.let) })
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.ServeHTTP(slow, httptest.NewRequest(http.MethodGet, "/hint", nil))
	}()
	defer func() {
		let()
		<-ended
	}()
	wiretest.Await(t, slow.interim, "the interim response")

	page()
	let()
	wiretest.Await(t, ended, "the end of the exchange with the slow client")
	if n := conns.Load(); n != kept {
		t.Errorf("%d connections, %d before", n, kept)
	}
	if slow.Code != http.StatusOK || slow.Body.String() != "page" {
		t.Errorf("the slow client got %d, %q", slow.Code, slow.Body)
	}
}

// The client of a response that is dropped for another target's holds no more than the interim response that is under way: the
// other target is leased meanwhile.
func TestInterimResponseOfADroppedOne(t *testing.T) { onPaths(t, testInterimResponseOfADroppedOne) }
func testInterimResponseOfADroppedOne(t *testing.T, via path) {
	leaktest.Check(t)
	var conns atomic.Int32
	slow := slowWriter{httptest.NewRecorder(), make(chan struct{}), make(chan struct{})}
	group := groupAt(t, upstream.Options{Protocol: upstream.H2C},
		hintingTarget(t, &conns, slow.interim), hintingTarget(t, &conns, slow.interim))
	p := newProxy(t, via, proxy.Options{Upstream: group, Retry: proxy.Retry{Statuses: []int{http.StatusServiceUnavailable}}})
	interims := 0
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.ServeHTTP(onceSlow{slow, &interims}, httptest.NewRequest(http.MethodGet, "/hint?busy", nil))
	}()
	wiretest.Await(t, slow.interim, "the interim response")
	deadline := time.Now().Add(20 * time.Second)
	for group.InFlight() < 2 && time.Now().Before(deadline) {
		time.Sleep(time.Millisecond)
	}
	if n := group.InFlight(); n != 2 {
		t.Errorf("%d targets are leased", n)
	}
	close(slow.let)
	wiretest.Await(t, ended, "the end of the exchange")
	if slow.Code != http.StatusServiceUnavailable || interims != 2 {
		t.Errorf("status %d behind %d interim responses", slow.Code, interims)
	}
}

// onceSlow is slow at its first interim response.
type onceSlow struct {
	slowWriter
	interims *int
}

func (w onceSlow) WriteHeader(status int) {
	if status == http.StatusEarlyHints {
		if *w.interims++; *w.interims > 1 {
			return
		}
	}
	w.slowWriter.WriteHeader(status)
}
