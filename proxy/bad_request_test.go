package proxy_test

import (
	"io"
	"sync/atomic"
	"testing"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// A request whose body ends before its time is never complete for the target.
// net/http takes the end for the client's leaving, so nothing is sent, as nginx
// sends nothing.
func TestBodyEndsEarly(t *testing.T) { onPaths(t, testBodyEndsEarly) }
func testBodyEndsEarly(t *testing.T, via path) {
	leaktest.Check(t)
	for name, request := range map[string]string{
		"before its length": "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\nhalf",
		"in a chunk":        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nhalf",
		"between chunks":    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			var failed failures
			target, requests := readingTarget(t)
			p := newProxy(t, via, proxy.Options{Upstream: groupAt(t, upstream.Options{}, target), OnError: failed.add})
			client := wiretest.Dial(t, wiretest.Serve(t, p))
			client.Send(request)
			client.End()
			if got := client.Ended(); got != "" {
				t.Errorf("the client got %q", got)
			}
			if e := failed.only(t); e.Kind != culvert.ClientGone || e.Target != "" || e.HeaderSent {
				t.Errorf("failure %#v", e)
			}
			if got := wiretest.Await(t, requests, "request"); got.err == nil {
				t.Errorf("the target got a complete request with body %q", got.body)
			}
		})
	}
}

// Of a small body that ends early the target sees nothing: it is sent when it is whole. net/http's
// transport sends what there is.
func TestSmallBodyEndsEarly(t *testing.T) { onPaths(t, testSmallBodyEndsEarly) }
func testSmallBodyEndsEarly(t *testing.T, via path) {
	leaktest.Check(t)
	var failed failures
	var reached atomic.Bool
	target := wiretest.Target(t, func(p *wiretest.Peer) {
		if _, err := p.R.Peek(1); err == nil {
			reached.Store(true)
		}
		_, _ = io.Copy(io.Discard, p.R) // to the connection's end
	})
	p := newProxy(t, via, proxy.Options{Upstream: groupAt(t, upstream.Options{}, target), OnError: failed.add})
	client := wiretest.Dial(t, wiretest.Serve(t, p))
	client.Send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf")
	client.End()
	client.Ended()
	if e := failed.only(t); e.Kind != culvert.ClientGone || reached.Load() && via != httpTransport {
		t.Errorf("failure %#v, the target got the request: %v", e, reached.Load())
	}
}

// A malformed body gets a response, and its connection is closed: it is not known where the
// next request would begin.
func TestBrokenChunk(t *testing.T) { onPathsParallel(t, testBrokenChunk) }
func testBrokenChunk(t *testing.T, via path) {
	var failed failures
	target, requests := readingTarget(t)
	p := newProxy(t, via, proxy.Options{Upstream: groupAt(t, upstream.Options{}, target), OnError: failed.add})
	client := wiretest.Dial(t, wiretest.Serve(t, p))
	client.Send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhalf\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n")
	client.Status(400)
	if rest := client.Ended(); rest != "" {
		t.Errorf("and then %q", rest)
	}
	if e := failed.only(t); e.Kind != culvert.BadRequest || e.Target != "" || e.HeaderSent {
		t.Errorf("failure %#v", e)
	}
	if via != httpTransport && wiretest.OwnServer() { // what was received of the body is read before the header is sent
		if len(requests) > 0 {
			t.Error("the target got a request")
		}
		return
	}
	if got := wiretest.Await(t, requests, "request"); got.err == nil {
		t.Errorf("the target got a complete request with body %q", got.body)
	}
}

// Where both lengths are given, chunks count, and the other one is not sent on
// (RFC 9112 section 6.3): the target can't be made to see another request.
func TestLengthAndChunks(t *testing.T) { onPaths(t, testLengthAndChunks) }
func testLengthAndChunks(t *testing.T, via path) {
	leaktest.Check(t)
	target, requests := readingTarget(t)
	client := wiretest.Dial(t, gateway(t, via, target))
	client.Send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n")
	if wiretest.OwnServer() { // RFC 9112 section 6.3
		client.Status(400)
		if rest := client.Ended(); rest != "" || len(requests) > 0 {
			t.Errorf("%q behind the refusal, %d requests", rest, len(requests))
		}
		return
	}
	client.Status(200)
	got := wiretest.Await(t, requests, "request")
	if got.body != "ok" || got.ContentLength != -1 || got.Header.Get("Content-Length") != "" {
		t.Errorf("the target got %q, length %d, fields %v", got.body, got.ContentLength, got.Header)
	}
}
