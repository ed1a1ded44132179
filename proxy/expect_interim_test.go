package proxy_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// The 100 that a client expects waits for an interim response of the target that is being written, and has none of the
// header that is meant for the final response.
func TestContinueBesideAnInterimResponse(t *testing.T) {
	onPaths(t, testContinueBesideAnInterimResponse)
}
func testContinueBesideAnInterimResponse(t *testing.T, via path) {
	synctest.Test(t, func(t *testing.T) {
		group := groupAt(t, upstream.Options{Protocol: upstream.HTTP1, DialContext: func(context.Context, string, string) (net.Conn, error) {
			near, far := net.Pipe()
			go hintAndRead(far)
			return near, nil
		}}, "192.0.2.1:80")
		p := newProxy(t, via, proxy.Options{Upstream: group})
		near, far := net.Pipe()
		guarded := &oneWriter{Conn: far}
		s := wiretest.Server(&http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Filter", "set")
			p.ServeHTTP(w, r)
		})})
		go func() { _ = s.Serve(wiretest.OneConn(guarded)) }()
		if _, err := io.WriteString(near, "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\nhello"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute) // the target is not waited for any more, and the client still takes no response
		if guarded.overlapped.Load() {
			t.Error("two responses are written at once")
		}
		client := wiretest.NewPeer(t, near)
		client.Receive("HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n")
		if resp, _ := client.Response(http.MethodPost); resp.StatusCode != http.StatusNoContent || resp.Header.Get("X-Filter") != "set" {
			t.Errorf("the final response is %s, %v", resp.Status, resp.Header)
		}
		client.Close()
		_ = s.Close()
		_ = p.Drain(context.Background())
		_ = group.Close()
	})
}

// hintAndRead responds with an interim response at once, and with a final one behind the request's body.
func hintAndRead(c net.Conn) {
	defer c.Close()
	r, err := http.ReadRequest(bufio.NewReader(c))
	if err != nil {
		return
	}
	if _, err := io.WriteString(c, "HTTP/1.1 103 Early Hints\r\n\r\n"); err != nil {
		return
	}
	if content, err := io.ReadAll(r.Body); err != nil || string(content) != "hello" {
		return
	}
	_, _ = io.WriteString(c, "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
}

// oneWriter is a connection that fails a Write during another.
type oneWriter struct {
	net.Conn
	writing, overlapped atomic.Bool
}

func (c *oneWriter) Write(p []byte) (int, error) {
	if !c.writing.CompareAndSwap(false, true) {
		c.overlapped.Store(true)
		return 0, net.ErrClosed
	}
	defer c.writing.Store(false)
	return c.Conn.Write(p)
}
