package proxy_test

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// readingTarget returns each request as net/http's server parses it, with its body and
// trailers, and responds with "ok".
func readingTarget(t testing.TB) (addr string, requests <-chan received) {
	c := make(chan received, 16)
	return wiretest.Target(t, func(p *wiretest.Peer) {
		for {
			if _, err := p.R.Peek(1); err != nil {
				return
			}
			r, err := http.ReadRequest(p.R)
			if err != nil {
				c <- received{err: err}
				return
			}
			body, err := io.ReadAll(r.Body)
			c <- received{r, string(body), err}
			p.Send(ok)
		}
	}), c
}

type received struct {
	*http.Request
	body string
	err  error
}

func TestRequestBody(t *testing.T) { onPaths(t, testRequestBody) }
func testRequestBody(t *testing.T, via path) {
	leaktest.Check(t)
	large := string(wiretest.Pattern(3 << 20))
	target, requests := readingTarget(t)
	client := wiretest.Dial(t, gateway(t, via, target))
	tests := []struct {
		name, request, body string
		length              int64
	}{
		{"with a length", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", "hello", 5},
		{"of length 0", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", "", 0},
		{"none", "DELETE / HTTP/1.1\r\nHost: a\r\n\r\n", "", 0},
		{"chunked", "PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n", "hello", -1},
		{"chunked and empty", "PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "", -1},
		{"of a GET", "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", "hello", 5},
		{"three MiB", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3145728\r\n\r\n" + large, large, 3 << 20},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			client.Send(test.request)
			client.Status(200)
			got := wiretest.Await(t, requests, "request")
			if got.err != nil || got.ContentLength != test.length {
				t.Errorf("length %d (%v), want %d", got.ContentLength, got.err, test.length)
			}
			wiretest.SameBytes(t, "body", []byte(got.body), []byte(test.body))
		})
	}
}

// Trailers reach the target with their values, announced or not (traefik#13822:
// the names were kept, the values were lost).
func TestRequestTrailers(t *testing.T) { onPaths(t, testRequestTrailers) }
func testRequestTrailers(t *testing.T, via path) {
	leaktest.Check(t)
	for name, announcement := range map[string]string{"announced": "Trailer: X-Sum\r\n", "not announced": ""} {
		t.Run(name, func(t *testing.T) {
			target, requests := readingTarget(t)
			client := wiretest.Dial(t, gateway(t, via, target))
			client.Send("POST / HTTP/1.1\r\nHost: a\r\n" + announcement + "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-Sum: 7\r\n\r\n")
			client.Status(200)
			got := wiretest.Await(t, requests, "request")
			if got.err != nil || got.body != "ok" || len(got.Trailer) != 1 || got.Trailer.Get("X-Sum") != "7" {
				t.Errorf("body %q, trailers %v (%v)", got.body, got.Trailer, got.err)
			}
		})
	}
}

func TestResponseTrailers(t *testing.T) { onPaths(t, testResponseTrailers) }
func testResponseTrailers(t *testing.T, via path) {
	leaktest.Check(t)
	for name, announcement := range map[string]string{"announced": "Trailer: X-Sum\r\n", "not announced": ""} {
		t.Run(name, func(t *testing.T) {
			client := wiretest.Dial(t, gateway(t, via, wiretest.Replying(t,
				"HTTP/1.1 200 OK\r\n"+announcement+"Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-Sum: 7\r\n\r\n")))
			client.Send("GET / HTTP/1.1\r\nHost: a\r\nTE: trailers\r\n\r\n")
			resp, body := client.Response("GET")
			if body != "ok" || len(resp.Trailer) != 1 || resp.Trailer.Get("X-Sum") != "7" {
				t.Errorf("body %q, trailers %v", body, resp.Trailer)
			}
		})
	}
}

// The client's 100 is the target's: it sends no body that the target refuses.
func TestExpectContinue(t *testing.T) { onPathsParallel(t, testExpectContinue) }
func testExpectContinue(t *testing.T, via path) {
	const request = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n"
	t.Run("granted", func(t *testing.T) {
		t.Parallel()
		client := wiretest.Dial(t, gateway(t, via, wiretest.Target(t, func(p *wiretest.Peer) {
			if head := p.Header(); !strings.Contains(head, "Expect: 100-continue\r\n") {
				t.Errorf("the target got %q", head)
			}
			p.Send("HTTP/1.1 100 Continue\r\n\r\n")
			p.Receive("hello")
			p.Send(ok)
		})))
		client.Send(request)
		client.Receive("HTTP/1.1 100 Continue\r\n\r\n")
		client.Send("hello")
		client.Status(200)
	})
	t.Run("refused", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { // the target has a second to refuse it
			rest := make(chan string, 1)
			client, _ := inBubble(t, via, proxy.Options{}, upstream.Options{}, func(p *wiretest.Peer) {
				p.Header()
				p.Send("HTTP/1.1 417 Expectation Failed\r\nContent-Length: 2\r\n\r\nno")
				rest <- p.Ended()
			})
			client.Send(request)
			resp, body := client.Response("POST")
			if resp.StatusCode != 417 || body != "no" {
				t.Errorf("response %s %q", resp.Status, body)
			}
			client.Close()
			if got := <-rest; got != "" {
				t.Errorf("the target got a body %q", got)
			}
		})
	})
}

// A response may begin and end before the request ends (golang/go#51109): a client
// that is still sending receives it.
func TestResponseBeforeTheRequestEnds(t *testing.T) {
	onPathsParallel(t, testResponseBeforeTheRequestEnds)
}
func testResponseBeforeTheRequestEnds(t *testing.T, via path) {
	responded := make(chan struct{})
	client := wiretest.Dial(t, gateway(t, via, wiretest.Target(t, func(p *wiretest.Peer) {
		p.Header()
		p.Receive("first half")
		p.Send("HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\n\r\nbig")
		<-responded
		p.Ended()
	})))
	client.Send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\nfirst half")
	resp, body := client.Response("POST")
	close(responded)
	if resp.StatusCode != 413 || body != "big" {
		t.Errorf("response %s %q", resp.Status, body)
	}
	client.Close()
}

// Both directions at once: the target echoes what it reads, and the client sends
// the next piece only when it has seen the last one (traefik#11258).
func TestFullDuplex(t *testing.T) { onPaths(t, testFullDuplex) }
func testFullDuplex(t *testing.T, via path) {
	leaktest.Check(t)
	client := wiretest.Dial(t, gateway(t, via, wiretest.Target(t, func(p *wiretest.Peer) {
		r, err := http.ReadRequest(p.R)
		if err != nil {
			t.Error(err)
			return
		}
		p.Send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
		buf := make([]byte, 1)
		for {
			if _, err := io.ReadFull(r.Body, buf); err != nil {
				break
			}
			p.Send("1\r\n" + string(buf) + "\r\n")
		}
		p.Send("0\r\n\r\n")
	})))
	client.Send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
	client.Header()
	for _, piece := range []string{"a", "b", "c"} {
		client.Send("1\r\n" + piece + "\r\n")
		client.Receive("1\r\n" + piece + "\r\n")
	}
	client.Send("0\r\n\r\n")
	client.Receive("0\r\n\r\n")
}

// A body over the limit is a 413 and not the target's fault (caddy#5652).
func TestBodyOverTheLimit(t *testing.T) { onPathsParallel(t, testBodyOverTheLimit) }
func testBodyOverTheLimit(t *testing.T, via path) {
	var failed failures
	p := newProxy(t, via, proxy.Options{
		Upstream: groupAt(t, upstream.Options{}, wiretest.Target(t, func(p *wiretest.Peer) { p.Ended() })),
		OnError:  failed.add,
	})
	client := wiretest.Dial(t, wiretest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, 10)
		p.ServeHTTP(w, r)
	})))
	client.Send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n14\r\n" + strings.Repeat("x", 20) + "\r\n")
	client.Status(413)
	client.Ended()
	if e := failed.only(t); e.Kind != culvert.BodyTooLarge || e.Target != "" || e.Status() != 413 {
		t.Errorf("failure %+v", e)
	}
}

// A target that ends with the request half read makes neither client nor gateway wait.
func TestConcurrentBodies(t *testing.T) { onPaths(t, testConcurrentBodies) }
func testConcurrentBodies(t *testing.T, via path) {
	leaktest.Check(t)
	target, requests := readingTarget(t)
	addr := gateway(t, via, target)
	var clients sync.WaitGroup
	for i := range 8 {
		clients.Go(func() {
			client := wiretest.Dial(t, addr)
			client.Send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n" + string(rune('a'+i)) + "\r\n0\r\n\r\n")
			client.Status(200)
		})
	}
	clients.Wait()
	seen := map[string]bool{}
	for range 8 {
		seen[wiretest.Await(t, requests, "request").body] = true
	}
	if len(seen) != 8 {
		t.Errorf("bodies %v", seen)
	}
}
