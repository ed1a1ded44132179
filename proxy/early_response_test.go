package proxy_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// A response that ends before its request closes the connection: what the client sends after it
// is no request, and the rest of the body is not waited for (RFC 9112 section 9.3).
func TestEarlyResponseEndsTheConnection(t *testing.T) {
	onPathsParallel(t, testEarlyResponseEndsTheConnection)
}
func testEarlyResponseEndsTheConnection(t *testing.T, via path) {
	const (
		chunked  = "POST /1 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
		lengthy  = "POST /1 HTTP/1.1\r\nHost: a\r\nContent-Length: 40000\r\n\r\n"
		smuggled = "POST /smuggled HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\ny\r\n0\r\n\r\n"
	)
	type upload struct{ name, begin, behind string }
	uploads := []upload{
		{"a request in place of a chunk", chunked + "1\r\nx\r\n", smuggled},
		{"between chunks", chunked + "1\r\nx\r\n", "0\r\n\r\n" + smuggled},
		{"before a chunk's end", chunked + "1\r\nx", "\r\n0\r\n\r\n" + smuggled},
		{"within a length", lengthy + "x", strings.Repeat("x", 39999) + smuggled},
		{"near the end of a length", lengthy + strings.Repeat("x", 39000), strings.Repeat("x", 1000) + smuggled},
		{"a request in place of the rest", lengthy + "x", smuggled},
	}
	for _, status := range []int{413, 200} {
		atOnce(t, uploads, func(u upload) string { return fmt.Sprint(u.name, ", ", status) }, func(t *testing.T, u upload) {
			requests := make(chan string, 9)
			addr := gateway(t, via, wiretest.Target(t, func(p *wiretest.Peer) {
				requests <- p.Header()
				if c, err := p.R.ReadByte(); err != nil || c != 'x' && c != '1' {
					t.Errorf("the body begins with %q, error %v", c, err)
				}
				p.Send(fmt.Sprint("HTTP/1.1 ", status, " Early\r\nContent-Length: 2\r\n\r\nno"))
				p.Ended()
			}))
			client := wiretest.Dial(t, addr)
			client.Send(u.begin)
			if resp, body := client.Response("POST"); resp.StatusCode != status || body != "no" {
				t.Errorf("%s %q", resp.Status, body)
			}
			_, _ = io.WriteString(client, u.behind) // the connection may be gone
			if more := client.Ended(); more != "" {
				t.Errorf("it continues with %q", more)
			}
			if n := len(requests); n != 1 {
				t.Errorf("the target had %d requests", n)
			}
		})
	}
}

// The connection is kept if the request ended before its response, with any status.
func TestConnectionGoesOn(t *testing.T) { onPaths(t, testConnectionGoesOn) }
func testConnectionGoesOn(t *testing.T, via path) {
	leaktest.Check(t)
	addr := gateway(t, via, wiretest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.WriteHeader(413)
		_, _ = w.Write(body)
	})))
	client := wiretest.Dial(t, addr)
	body := strings.Repeat("x", 40000)
	for range 3 {
		client.Send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 40000\r\n\r\n" + body)
		if resp, got := client.Response("POST"); resp.StatusCode != 413 || got != body || resp.Close {
			t.Errorf("%s, %d bytes, closes: %v", resp.Status, len(got), resp.Close)
		}
		client.Send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n")
		if resp, got := client.Response("POST"); resp.StatusCode != 413 || got != "abc" || resp.Close {
			t.Errorf("%s, %q, closes: %v", resp.Status, got, resp.Close)
		}
	}
}

// If no target could be reached, a small body that was not read does not close its connection. A large one does, and so
// does one for which the client has received no 100.
func TestFailureBeforeTheBody(t *testing.T) { onPathsParallel(t, testFailureBeforeTheBody) }
func testFailureBeforeTheBody(t *testing.T, via path) {
	for name, test := range map[string]struct {
		request string
		closes  bool
	}{
		"with a length": {"Content-Length: 5\r\n\r\nhello", false},
		"of chunks":     {"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", false},
		"large":         {"Content-Length: 10000000\r\n\r\nhello", true},
		"that waits":    {"Content-Length: 5\r\nExpect: 100-continue\r\n\r\n", true},
		"that stalls":   {"Content-Length: 5\r\n\r\nhell", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			target := upstream.Target{Addr: wiretest.Unused(t), MaxFails: -1}
			client := wiretest.Dial(t, wiretest.Serve(t, newProxy(t, via, proxy.Options{Upstream: groupOf(t, upstream.Options{}, target)})))
			for range 2 {
				client.Send("POST / HTTP/1.1\r\nHost: a\r\n" + test.request)
				resp, _ := client.Response("POST")
				if resp.StatusCode != 502 || resp.Close != test.closes {
					t.Errorf("response %s, closes: %v", resp.Status, resp.Close)
				}
				if test.closes {
					client.Ended()
					break
				}
			}
		})
	}
}
