package server

import (
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/culvert-go/culvert/internal/wiretest"
)

// A call from another goroutine that waits for nothing, while the handler returns, costs neither the response nor a connection
// that the handler has taken.
func TestShortCallWhileTheHandlerReturns(t *testing.T) {
	s := handler(func(w http.ResponseWriter, r *http.Request) {
		began := make(chan bool)
		w.Header().Set("X-A", "b")
		call := func() {
			rw := w.(*writer) // as a call that is under way
			rw.mu.Lock()
			close(began)
			time.Sleep(2 * time.Millisecond)
			rw.mu.Unlock()
		}
		if r.URL.Path == "/" {
			_, _ = io.WriteString(w, "whole")
			go call()
			<-began
			return
		}
		conn, buf, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		go func() {
			defer conn.Close()
			_, _ = io.ReadFull(buf, make([]byte, 1))
			_, _ = io.WriteString(conn, "taken")
		}()
		go call()
		<-began
	})
	addr := start(t, s)
	p := wiretest.Dial(t, addr)
	for range 20 {
		p.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		if _, body := p.Response("GET"); body != "whole" {
			t.Fatalf("body %q", body)
		}
	}
	for range 20 {
		p := wiretest.Dial(t, addr)
		p.Send("GET /take HTTP/1.1\r\nHost: a\r\n\r\n")
		p.Send("a")
		p.Receive("taken")
		p.Close()
	}
}
