package server

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/culvert-go/culvert/internal/http1"
	"github.com/culvert-go/culvert/internal/wiretest"
)

// A request without TLS to a server of TLS is a refused one for OnRefused, like any other; the connection's states are those of one
// whose handshake has failed.
func TestCleartextIsRefused(t *testing.T) {
	for _, c := range []struct {
		raw, line, host string
		cause           error
	}{
		{"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc", "POST /x HTTP/1.1", "a", http1.ErrCleartext},
		{"GET / HTTP/1.0\r\n\r\n", "GET / HTTP/1.0", "", http1.ErrCleartext},
		{"GET / HTTP/1.1\r\nA : b\r\n\r\n", "GET / HTTP/1.1", "", http1.ErrField},
		{"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "PRI * HTTP/2.0", "", http1.ErrOtherVersion},
	} {
		refused := make(chan *Refusal, 2)
		var open atomic.Int64
		s := handler(func(http.ResponseWriter, *http.Request) { t.Error("the handler was called") })
		s.ConnState = func(_ net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				open.Add(1)
			case http.StateClosed:
				open.Add(-1)
			default:
				t.Errorf("state %v", state)
			}
		}
		s.OnRefused = func(w http.ResponseWriter, r *Refusal) {
			w.WriteHeader(497)
			_, _ = io.WriteString(w, r.Request.Host)
			refused <- r
		}
		p := wiretest.Dial(t, startTLS(t, s))
		p.Send(c.raw)
		resp, body := p.Response("GET")
		if resp.StatusCode != 497 || !resp.Close || body != c.host {
			t.Errorf("%q: %s, close %v, %q", c.raw, resp.Status, resp.Close, body)
		}
		p.End()
		if rest := p.Ended(); rest != "" {
			t.Errorf("%q: rest %q", c.raw, rest)
		}
		if r := wiretest.Await(t, refused, "refusal"); !errors.Is(r.Err, c.cause) || r.Line != c.line || r.Request.TLS != nil || len(refused) > 0 {
			t.Errorf("%q: refusal %+v", c.raw, r)
		}
		_ = s.Close()
		if drained := s.awaitDrained(); drained != nil {
			<-drained
		}
		if n := open.Load(); n != 0 {
			t.Errorf("%q: %d connections are open for the hook", c.raw, n)
		}
	}
}

// A client of TLS is served as before, and one that sends neither gets a response that says so.
func TestCleartextIsNoRecord(t *testing.T) {
	refused := make(chan *Refusal, 1)
	s := handler(func(http.ResponseWriter, *http.Request) {})
	s.OnRefused = func(_ http.ResponseWriter, r *Refusal) { refused <- r }
	addr := startTLS(t, s)
	conn, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	wiretest.NewPeer(t, conn).Send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
	if got, err := io.ReadAll(conn); err != nil || !strings.HasPrefix(string(got), "HTTP/1.1 200 ") {
		t.Errorf("%q, %v", got, err)
	}
	p := wiretest.Dial(t, addr)
	p.Send("\x16nonsense that is no record of TLS")
	_ = p.Ended()
	if len(refused) > 0 {
		t.Errorf("refused %+v", <-refused)
	}
}
