package proxy_test

import (
	"strings"
	"testing"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// Every piece that the target flushes reaches the client before the next is
// sent: the target waits for the client's word between them.
func TestStreaming(t *testing.T) { onPaths(t, testStreaming) }
func testStreaming(t *testing.T, via path) {
	leaktest.Check(t)
	tests := []struct {
		name, head string
		framed     func(string) string
		end        string
	}{
		{"chunked", "Transfer-Encoding: chunked\r\n", func(s string) string { return "3\r\n" + s + "\r\n" }, "0\r\n\r\n"},
		{"with a length", "Content-Length: 9\r\n", func(s string) string { return s }, ""},
		{"with a length that the kernel moves", "Content-Length: 100009\r\n", func(s string) string { return s }, strings.Repeat("x", 100000)},
		{"until the connection ends", "Connection: close\r\n", func(s string) string { return s }, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			seen := make(chan struct{})
			addr := gateway(t, via, wiretest.Target(t, func(p *wiretest.Peer) {
				p.Header()
				p.Send("HTTP/1.1 200 OK\r\n" + test.head + "\r\n")
				for _, piece := range []string{"one", "two", "six"} {
					p.Send(test.framed(piece))
					wiretest.Await(t, seen, "the client's word")
				}
				p.Send(test.end)
			}))
			client := wiretest.Dial(t, addr)
			client.Send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
			head := client.Header()
			chunked := strings.Contains(head, "Transfer-Encoding: chunked")
			for _, piece := range []string{"one", "two", "six"} {
				if chunked {
					piece = "3\r\n" + piece + "\r\n"
				}
				client.Receive(piece)
				seen <- struct{}{}
			}
			if chunked {
				client.Receive("0\r\n\r\n")
			} else {
				client.Receive(test.end)
			}
			if rest := client.Rest(); rest != "" {
				t.Errorf("and then %q", rest)
			}
		})
	}
}

// The header of a stream arrives before its first byte.
func TestStreamHeadFirst(t *testing.T) { onPaths(t, testStreamHeadFirst) }
func testStreamHeadFirst(t *testing.T, via path) {
	leaktest.Check(t)
	seen := make(chan struct{})
	client := wiretest.Dial(t, gateway(t, via, wiretest.Target(t, func(p *wiretest.Peer) {
		p.Header()
		p.Send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
		wiretest.Await(t, seen, "the client's word")
		p.Send("0\r\n\r\n")
	})))
	client.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	client.Header()
	close(seen)
	client.Receive("0\r\n\r\n")
}

func TestLargeResponse(t *testing.T) { onPaths(t, testLargeResponse) }
func testLargeResponse(t *testing.T, via path) {
	leaktest.Check(t)
	body := wiretest.Pattern(8<<20 + 1)
	client := wiretest.Dial(t, gateway(t, via, wiretest.Target(t, func(p *wiretest.Peer) {
		p.Header()
		p.Send("HTTP/1.1 200 OK\r\nContent-Length: 8388609\r\n\r\n" + string(body))
		p.Ended()
	})))
	client.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	_, got := client.Response("GET")
	wiretest.SameBytes(t, "body", []byte(got), body)
}

// A client that disconnects ends the exchange with the target. That is logged with 499, and
// is not the target's failure (golang/go#20071, caddy#2547).
func TestClientLeaves(t *testing.T) { onPaths(t, testClientLeaves) }
func testClientLeaves(t *testing.T, via path) {
	leaktest.Check(t)
	for name, head := range map[string]string{
		"before the head": "",
		"in the body":     "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nfirst",
	} {
		t.Run(name, func(t *testing.T) {
			var failed failures
			arrived, gone := make(chan struct{}), make(chan struct{})
			p := newProxy(t, via, proxy.Options{
				Upstream: groupAt(t, upstream.Options{}, wiretest.Target(t, func(p *wiretest.Peer) {
					p.Header()
					p.Send(head)
					close(arrived)
					p.Ended()
					close(gone)
				})),
				OnError: failed.add,
			})
			client := wiretest.Dial(t, wiretest.Serve(t, p))
			client.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
			wiretest.Await(t, arrived, "request")
			if head != "" {
				client.Header()
				client.Receive("first")
			}
			client.Close()
			wiretest.Await(t, gone, "end of the target's connection")
			failed.await(t)
			if e := failed.only(t); e.Kind != culvert.ClientGone || e.Status() != 499 || !e.ClientSide() || e.HeaderSent != (head != "") {
				t.Errorf("failure %+v", e)
			}
		})
	}
}
