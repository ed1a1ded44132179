package server

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/culvert-go/culvert/internal/wiretest"
)

// A write that fails ends the context, also where the client is not watched: it may have left, and a handler that ignores errors of
// writes must end.
func TestFailedWriteEndsContext(t *testing.T) {
	for _, c := range []struct{ name, request, more string }{
		{"body left", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", ""},
		{"request follows", "GET / HTTP/1.1\r\nHost: a\r\n\r\n", "G"},
	} {
		t.Run(c.name, func(t *testing.T) {
			waiting, began, ended := make(chan bool), make(chan bool), make(chan bool)
			s := handler(func(w http.ResponseWriter, r *http.Request) {
				done := r.Context().Done()
				close(waiting)
				for c := r.Context().(*requestContext).c; ; time.Sleep(time.Millisecond) {
					c.mu.Lock()
					watched := c.watch.running
					c.mu.Unlock()
					if !watched {
						break
					}
				}
				close(began)
				for {
					select {
					case <-done:
						close(ended)
						return
					case <-time.After(time.Millisecond):
						_, _ = io.WriteString(w, "event")
						w.(http.Flusher).Flush()
					}
				}
			})
			p := wiretest.Dial(t, start(t, s))
			p.Send(c.request)
			wiretest.Await(t, waiting, "request")
			p.Send(c.more)
			wiretest.Await(t, began, "end of the watch")
			p.Reset()
			wiretest.Await(t, ended, "end of the context")
		})
	}
}

// The first use of the context by another goroutine, while the handler takes the connection, starts no watch that takes a byte
// from its new owner.
func TestHijackBesideWatch(t *testing.T) {
	s := handler(func(w http.ResponseWriter, r *http.Request) {
		ctx := r.Context()
		go func() { _ = ctx.Done() }()
		conn, buf, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = conn.Write([]byte("taken"))
		b := make([]byte, 5)
		_, _ = io.ReadFull(buf, b)
		_, _ = conn.Write(b)
	})
	addr := start(t, s)
	for range 300 {
		p := wiretest.Dial(t, addr)
		p.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		p.Receive("taken")
		p.Send("hello")
		p.Receive("hello")
		p.Close()
	}
}

// The byte that the watch has read may be the last one of a request, behind which the client waits for the response.
func TestWatchReadsLastByte(t *testing.T) {
	for name, request := range map[string]string{
		"header": "GET /2 HTTP/1.1\r\nHost: a\r\n\r\n",
		"length": "POST /2 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
		"chunks": "POST /2 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
	} {
		waiting := make(chan bool)
		p := wiretest.Dial(t, start(t, handler(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/1" {
				_ = r.Context().Done()
				close(waiting)
				for c := r.Context().(*requestContext).c; ; time.Sleep(time.Millisecond) {
					c.mu.Lock()
					hasByte := c.watch.hasByte
					c.mu.Unlock()
					if hasByte {
						return
					}
				}
			}
			_, _ = io.Copy(w, r.Body)
		})))
		last := len(request) - 1
		p.Send("GET /1 HTTP/1.1\r\nHost: a\r\n\r\n" + request[:last])
		wiretest.Await(t, waiting, "request")
		p.Send(request[last:])
		p.Status(http.StatusOK)
		if resp, err := http.ReadResponse(p.R, nil); err != nil || resp.StatusCode != http.StatusOK {
			t.Errorf("%s: %v, %v", name, resp, err)
		}
		p.Close()
	}
}

// A read of a body whose handler has returned fails, and does not end the watch by which a later request of the connection
// learns that the client has left.
func TestLateReadKeepsWatch(t *testing.T) {
	bodies, waiting, ended, failed := make(chan io.ReadCloser, 1), make(chan *conn), make(chan bool), make(chan bool)
	defer close(failed)
	s := handler(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == "POST" {
			bodies <- r.Body
			return
		}
		done := r.Context().Done()
		waiting <- r.Context().(*requestContext).c
		select {
		case <-done:
			close(ended)
		case <-failed:
		}
	})
	p := wiretest.Dial(t, start(t, s))
	p.Send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello")
	if got := p.Header(); !strings.HasPrefix(got, "HTTP/1.1 200 ") {
		t.Fatal(got)
	}
	p.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	c := wiretest.Await(t, waiting, "second request")
	if n, err := wiretest.Await(t, bodies, "body").Read(make([]byte, 1)); n != 0 || err != http.ErrBodyReadAfterClose {
		t.Errorf("a read behind the handler: %d, %v", n, err)
	}
	c.mu.Lock()
	watched := c.watch.running
	c.mu.Unlock()
	if !watched {
		t.Fatal("the watch has ended")
	}
	p.Close()
	wiretest.Await(t, ended, "end of the context")
}
