package proxy_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// pieces sends a response in pieces, with pauses in which each piece must reach the client.
func pieces(p *wiretest.Peer, body []byte, next <-chan struct{}) {
	p.Header()
	p.Send(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", len(body)))
	for piece := range slices.Chunk(body, 100_000) {
		p.Send(string(piece))
		<-next
	}
}

// Large responses move from socket to socket without loss: with hooks that see only the header, with a filter
// that sees the body, and when the target pauses.
func TestLargeResponsesThroughFilters(t *testing.T) { onPaths(t, testLargeResponsesThroughFilters) }
func testLargeResponsesThroughFilters(t *testing.T, via path) {
	leaktest.Check(t)
	body := bytes.Repeat([]byte("0123456789abcdefghij"), 25_000)
	upper := filters.OnResponse(filters.ResponseHooks{Body: func(_ *http.Request, _ int, _ http.Header, w io.Writer) io.WriteCloser { return upperWriter{w} }})
	for name, test := range map[string]struct {
		filter culvert.Filter
		want   []byte
	}{
		"none": {func(next http.Handler) http.Handler { return next }, body},
		"head": {filters.OnResponse(filters.ResponseHooks{Header: func(_ *http.Request, _ int, h http.Header) { h.Set("X-Seen", "1") }}), body},
		"body": {upper, bytes.ToUpper(body)},
	} {
		t.Run(name, func(t *testing.T) {
			next := make(chan struct{}, 10)
			var ended culvert.ResponseStats
			done := make(chan struct{})
			count := filters.OnResponse(filters.ResponseHooks{End: func(_ *http.Request, s culvert.ResponseStats) { ended = s; close(done) }})
			p := newProxy(t, via, proxy.Options{Upstream: groupAt(t, upstream.Options{}, wiretest.Target(t, func(p *wiretest.Peer) { pieces(p, body, next) }))})
			client := wiretest.Dial(t, wiretest.Serve(t, filters.NewChain(count, test.filter).Then(p)))
			client.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
			client.Header()
			for piece := range slices.Chunk(test.want, 100_000) {
				client.Receive(string(piece))
				next <- struct{}{}
			}
			<-done
			if ended.Bytes != int64(len(body)) {
				t.Errorf("%d bytes were counted", ended.Bytes)
			}
		})
	}
}

type upperWriter struct{ w io.Writer }

func (u upperWriter) Write(p []byte) (int, error) { return u.w.Write(bytes.ToUpper(p)) }
func (upperWriter) Close() error                  { return nil }

// A target that stops within a large response and a client that stops reading it are distinguished.
func TestLargeResponsesStall(t *testing.T) { onPaths(t, testLargeResponsesStall) }
func testLargeResponsesStall(t *testing.T, via path) {
	leaktest.Check(t)
	for name, test := range map[string]struct {
		options proxy.Options
		sends   int
		want    culvert.ErrorKind
	}{
		"target": {proxy.Options{BodyTimeout: 50 * time.Millisecond}, 100_000, culvert.Timeout},
		"client": {proxy.Options{WriteTimeout: 50 * time.Millisecond}, 64 << 20, culvert.ClientGone},
		// The gateway reads ahead then, and the target sends nothing more.
		"client, read ahead of": {proxy.Options{WriteTimeout: 50 * time.Millisecond, ResponseBuffer: &proxy.Buffer{Memory: 48 << 20}}, 48 << 20, culvert.ClientGone},
	} {
		t.Run(name, func(t *testing.T) {
			var failed failures
			test.options.OnError = failed.add
			test.options.Upstream = groupAt(t, upstream.Options{}, wiretest.Target(t, func(p *wiretest.Peer) {
				p.Header()
				_, _ = io.WriteString(p.Conn, "HTTP/1.1 200 OK\r\nContent-Length: 67108864\r\n\r\n")
				_, _ = io.CopyN(p.Conn, zeros{}, int64(test.sends))
				_, _ = io.Copy(io.Discard, p.Conn)
			}))
			client := wiretest.Dial(t, wiretest.Serve(t, newProxy(t, via, test.options)))
			client.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
			failed.await(t)
			if e := failed.only(t); e.Kind != test.want || !e.HeaderSent {
				t.Errorf("failure %#v", e)
			}
			client.Close()
		})
	}
}

// A large response that ends too early, or is reset, is never taken for a whole one.
func TestLargeResponsesBreakOff(t *testing.T) { onPaths(t, testLargeResponsesBreakOff) }
func testLargeResponsesBreakOff(t *testing.T, via path) {
	leaktest.Check(t)
	for name, end := range map[string]func(*wiretest.Peer){
		"closed": func(p *wiretest.Peer) { p.Conn.Close() },
		"reset":  (*wiretest.Peer).Reset,
	} {
		t.Run(name, func(t *testing.T) {
			var failed failures
			target := wiretest.Target(t, func(p *wiretest.Peer) {
				p.Header()
				p.Send("HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n" + string(bytes.Repeat([]byte("x"), 100_000)))
				end(p)
			})
			client := wiretest.Dial(t, wiretest.Serve(t, newProxy(t, via, proxy.Options{Upstream: groupAt(t, upstream.Options{}, target), OnError: failed.add})))
			client.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
			client.Header()
			client.Ended()
			if e := failed.only(t); e.Kind != culvert.BodyBroken {
				t.Errorf("failure %#v", e)
			}
		})
	}
}

// A client that stops for longer than a target may is no target that stops: also where the pieces are
// not moved at once, but copied, for the client's socket is not plain. The target has written everything
// by then, so that no delay of this process can be its delay.
func TestLargeResponsesToASlowClient(t *testing.T) {
	onPathsParallel(t, testLargeResponsesToASlowClient)
}
func testLargeResponsesToASlowClient(t *testing.T, via path) {
	const bodyTimeout = 30 * soon       // this process may stop, too
	body := wiretest.Pattern(512 << 10) // more than narrow sockets take, and less than those of a target hold
	sent, written := make(chan struct{}), make(chan int, 1000)
	target := wiretest.Target(t, func(p *wiretest.Peer) {
		p.Header()
		p.Send(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", len(body)) + string(body))
		close(sent)
		p.Ended()
	})
	var failed failures
	p := newProxy(t, via, proxy.Options{Upstream: groupAt(t, upstream.Options{}, target), BodyTimeout: bodyTimeout, OnError: failed.add})
	client := wiretest.Dial(t, wiretest.ServeOver(t, p, func(l net.Listener) net.Listener { return wrapped{wiretest.Narrow(l), written} }))
	client.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	wiretest.Await(t, sent, "end of the target's response")
	total := 0
	for waiting := true; waiting; { // until the gateway waits for the client, and longer than the target may take
		select {
		case n := <-written:
			total += n
		case <-time.After(2 * bodyTimeout):
			waiting = false
		}
	}
	if total >= len(body) {
		t.Errorf("the gateway did not wait for the client")
	}
	client.Header()
	client.Receive(string(body))
	if len(failed.all) > 0 {
		t.Errorf("failures %v", failed.all)
	}
}

// wrapped returns connections to which the kernel can't move bytes, and reports their writes.
type wrapped struct {
	net.Listener
	written chan<- int
}

func (l wrapped) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return wrappedConn{c, l.written}, err
}

type wrappedConn struct {
	net.Conn
	written chan<- int
}

func (c wrappedConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.written <- n
	return n, err
}
