package server

import (
	"net"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/culvert-go/culvert/internal/wiretest"
)

// slowAddrs is a listener whose first connection does not know its addresses before it is closed: they are in a PROXY
// protocol header that its client never sends.
type slowAddrs struct {
	net.Listener
	accepted atomic.Int32
	ended    chan bool
}

func (l *slowAddrs) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil && l.accepted.Add(1) == 1 {
		c = withoutAddr{c, l.ended}
	}
	return c, err
}

type withoutAddr struct {
	net.Conn
	ended chan bool
}

func (c withoutAddr) RemoteAddr() net.Addr { <-c.ended; return c.Conn.RemoteAddr() }

func (c withoutAddr) LocalAddr() net.Addr { <-c.ended; return c.Conn.LocalAddr() }

// A connection that waits for its addresses does not hold up the next one.
func TestConnectionThatWaitsForItsAddress(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &slowAddrs{Listener: inner, ended: make(chan bool)}
	s := handler(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Remote", r.RemoteAddr)
		w.Header().Set("Local", r.Context().Value(http.LocalAddrContextKey).(net.Addr).String())
	})
	startOn(t, s, func() error { return s.Serve(l) })
	t.Cleanup(func() { close(l.ended) })
	first, second := wiretest.Dial(t, inner.Addr().String()), wiretest.Dial(t, inner.Addr().String())
	first.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	second.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	resp, _ := second.Response("GET")
	if h := resp.Header; h.Get("Remote") != second.LocalAddr().String() || h.Get("Local") != inner.Addr().String() {
		t.Errorf("addresses %q", h)
	}
}
