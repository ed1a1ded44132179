package server

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"runtime"
	"testing"

	"github.com/culvert-go/culvert/internal/wiretest"
)

// A handler that ends its goroutine, as testing.T.FailNow does, ends the connection as a panic does: what it was given fails.
func TestGoexit(t *testing.T) {
	requests := make(chan *http.Request, 1)
	log := new(lines)
	s := handler(func(_ http.ResponseWriter, r *http.Request) {
		requests <- r
		runtime.Goexit()
	})
	s.ErrorLog = newLogger(log)
	p := wiretest.Dial(t, start(t, s))
	p.Send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello")
	if rest := p.Ended(); rest != "" {
		t.Errorf("rest %q", rest)
	}
	r := <-requests
	wiretest.Await(t, r.Context().Done(), "end of the context")
	if _, err := r.Body.Read(make([]byte, 5)); err != http.ErrBodyReadAfterClose {
		t.Error(err)
	}
}

// A connection that was hijacked is the new owner's with all that was received, also if the handler ends its goroutine.
func TestGoexitBehindHijack(t *testing.T) {
	type taken struct {
		conn net.Conn
		buf  *bufio.ReadWriter
	}
	connections := make(chan taken, 1)
	ended := make(chan bool)
	s := handler(func(w http.ResponseWriter, _ *http.Request) {
		defer close(ended)
		conn, buf, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
		}
		connections <- taken{conn, buf}
		runtime.Goexit()
	})
	p := wiretest.Dial(t, start(t, s))
	p.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\nhello")
	c := wiretest.Await(t, connections, "connection")
	defer c.conn.Close()
	wiretest.Await(t, ended, "end of the handler")
	for range 100 {
		runtime.Gosched()
	}
	p.Send("world")
	b := make([]byte, 10)
	if n, err := io.ReadFull(c.buf, b); string(b) != "helloworld" {
		t.Errorf("%q %v", b[:n], err)
	}
}
