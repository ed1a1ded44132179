package proxy_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httputil"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// A buffered request is sent only after its whole body was received, with its length, and
// the body can be sent again, from memory or from disk.
func TestRequestBuffer(t *testing.T) { onPaths(t, testRequestBuffer) }
func testRequestBuffer(t *testing.T, via path) {
	leaktest.Check(t)
	dir := t.TempDir()
	second, requests := readingTarget(t)
	p := newProxy(t, via, proxy.Options{RequestBuffer: &proxy.Buffer{Memory: 16, Disk: 1 << 20, Dir: dir}, Retry: proxy.Retry{Statuses: []int{503}},
		Upstream: groupAt(t, upstream.Options{Balance: upstream.First()}, breaking(t, "503"), second)})
	client := wiretest.Dial(t, wiretest.Serve(t, p))
	large := string(wiretest.Pattern(100 << 10))
	for _, body := range []string{"hello", large} {
		client.Send("PUT / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n")
		client.Receive("HTTP/1.1 100 Continue\r\n\r\n")
		if len(requests) != 0 {
			t.Error("a target got the request before the body was received")
		}
		client.Send(chunk(body) + "0\r\n\r\n")
		client.Status(200)
		got := wiretest.Await(t, requests, "second try")
		wiretest.SameBytes(t, "body", []byte(got.body), []byte(body))
		if got.ContentLength != int64(len(body)) || got.Header.Get("Expect") != "" {
			t.Errorf("length %d of %d, fields %v", got.ContentLength, len(body), got.Header)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("%v is left", left)
	}
}

func chunk(s string) string {
	const hex = "0123456789abcdef"
	n := len(s)
	size := ""
	for ; n > 0; n /= 16 {
		size = hex[n%16:n%16+1] + size
	}
	return size + "\r\n" + s + "\r\n"
}

// A body that does not fit is refused before a target gets the request. The trailers of one
// that fits are kept.
func TestRequestBufferBounds(t *testing.T) { onPaths(t, testRequestBufferBounds) }
func testRequestBufferBounds(t *testing.T, via path) {
	leaktest.Check(t)
	target, requests := readingTarget(t)
	p := newProxy(t, via, proxy.Options{RequestBuffer: &proxy.Buffer{Memory: 8, Disk: 8}, Upstream: groupAt(t, upstream.Options{}, target)})
	client := wiretest.Dial(t, wiretest.Serve(t, p))
	client.Send("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 17\r\n\r\n0123456789abcdefg") // all of it: the connection is kept
	client.Status(413)
	client.Send("PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n" + chunk("0123456789abcdef") + "0\r\nX-Sum: 7\r\n\r\n")
	client.Status(200)
	got := wiretest.Await(t, requests, "request")
	if got.body != "0123456789abcdef" || got.Trailer.Get("X-Sum") != "7" {
		t.Errorf("body %q, trailers %v", got.body, got.Trailer)
	}
}

// A body that does not fit is refused, and its connection closed, though the client does not send the rest.
func TestRequestBufferBoundsOfAnUnsentBody(t *testing.T) {
	onPaths(t, testRequestBufferBoundsOfAnUnsentBody)
}
func testRequestBufferBoundsOfAnUnsentBody(t *testing.T, via path) {
	synctest.Test(t, func(t *testing.T) {
		p := newProxy(t, via, proxy.Options{RequestBuffer: &proxy.Buffer{Memory: 8, Disk: 8}, Upstream: groupAt(t, upstream.Options{}, "192.0.2.1:80")})
		if got := wiretest.Unsent(t, p, "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 18\r\n\r\n0123456789abcdefg"); !strings.HasPrefix(got, "HTTP/1.1 413 ") {
			t.Errorf("the client got %q", got)
		}
	})
}

// A disk that fails is the gateway's fault, neither the client's nor a target's.
func TestRequestBufferOnABrokenDisk(t *testing.T) { onPaths(t, testRequestBufferOnABrokenDisk) }
func testRequestBufferOnABrokenDisk(t *testing.T, via path) {
	dir := t.TempDir() + "/removed"
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		var failed failures
		group := groupAt(t, upstream.Options{}, "192.0.2.1:80")
		p := newProxy(t, via, proxy.Options{RequestBuffer: &proxy.Buffer{Memory: 1, Disk: 8, Dir: dir}, Upstream: group, OnError: failed.add})
		if err := os.Remove(dir); err != nil {
			t.Fatal(err)
		}
		if got := wiretest.Unsent(t, p, "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nhello"); !strings.HasPrefix(got, "HTTP/1.1 500 ") {
			t.Errorf("the client got %q", got)
		}
		if e := failed.only(t); e.Kind != culvert.Internal || e.Target != "" || !errors.Is(e, os.ErrNotExist) {
			t.Errorf("failure %v", e)
		}
	})
}

// The target is done while the client has taken nothing yet; what does not fit is
// read at the client's pace, and not a byte is lost.
func TestResponseBuffer(t *testing.T) { onPaths(t, testResponseBuffer) }
func testResponseBuffer(t *testing.T, via path) {
	leaktest.Check(t)
	const size = 1 << 20 // more than narrow sockets take
	body := wiretest.Pattern(size)
	for name, buffer := range map[string]proxy.Buffer{
		"fits in memory": {Memory: size},
		"fits on disk":   {Memory: 1 << 10, Disk: size},
		"does not fit":   {Memory: 1 << 10, Disk: 256 << 10},
	} {
		t.Run(name, func(t *testing.T) {
			done := make(chan struct{})
			target := wiretest.ServeOver(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = w.Write(body)
				close(done)
			}), wiretest.Narrow)
			dir := t.TempDir()
			if buffer.Disk > 0 {
				buffer.Dir = dir
			}
			p := newProxy(t, via, proxy.Options{Upstream: groupAt(t, upstream.Options{}, target), ResponseBuffer: &buffer})
			client := wiretest.Dial(t, wiretest.ServeOver(t, p, wiretest.Narrow))
			client.Send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
			if name != "does not fit" {
				wiretest.Await(t, done, "end of the target's response")
			}
			resp, got := client.Response("GET")
			wiretest.SameBytes(t, "body", []byte(got), body)
			if resp.ContentLength != -1 {
				t.Errorf("length %d", resp.ContentLength)
			}
			wiretest.Await(t, done, "end of the target's response")
			if left, _ := os.ReadDir(dir); len(left) != 0 {
				t.Errorf("%v is left", left)
			}
		})
	}
}

// Buffering holds nothing back: what the target flushes is sent at once.
func TestResponseBufferStreams(t *testing.T) { onPaths(t, testResponseBufferStreams) }
func testResponseBufferStreams(t *testing.T, via path) {
	leaktest.Check(t)
	for name, field := range map[string]string{"buffered": "", "switched off by the target": "X-Accel-Buffering: no\r\n"} {
		t.Run(name, func(t *testing.T) {
			seen := make(chan struct{})
			target := wiretest.Target(t, func(p *wiretest.Peer) {
				p.Header()
				p.Send("HTTP/1.1 200 OK\r\n" + field + "Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n")
				for range 3 {
					p.Send(chunk("piece"))
					wiretest.Await(t, seen, "the client's word")
				}
				p.Send("0\r\nX-Sum: 7\r\n\r\n")
			})
			p := newProxy(t, via, proxy.Options{Upstream: groupAt(t, upstream.Options{}, target), ResponseBuffer: &proxy.Buffer{}})
			client := wiretest.Dial(t, wiretest.Serve(t, p))
			client.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
			if head := client.Header(); strings.Contains(head, "Accel") {
				t.Errorf("head %q", head)
			}
			for range 3 {
				client.Receive("5\r\npiece\r\n")
				seen <- struct{}{}
			}
			client.Receive("0\r\nX-Sum: 7\r\n\r\n")
		})
	}
}

// A response that its target breaks off never looks complete, also from a buffer.
func TestResponseBufferOfHalfABody(t *testing.T) { onPaths(t, testResponseBufferOfHalfABody) }
func testResponseBufferOfHalfABody(t *testing.T, via path) {
	leaktest.Check(t)
	var failed failures
	target := wiretest.Target(t, func(p *wiretest.Peer) {
		p.Header()
		p.Send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
		p.Reset()
	})
	p := newProxy(t, via, proxy.Options{Upstream: groupAt(t, upstream.Options{}, target), ResponseBuffer: &proxy.Buffer{}, OnError: failed.add})
	client := wiretest.Dial(t, wiretest.Serve(t, p))
	client.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	if got := client.Ended(); !strings.HasSuffix(got, "\r\n\r\nhalf") {
		t.Errorf("the client got %q", got)
	}
	if e := failed.only(t); e.Kind != culvert.BodyBroken || e.Target != target {
		t.Errorf("failure %#v", e)
	}
}

// flushes counts how often a writer is flushed.
type flushes struct {
	http.ResponseWriter
	n chan struct{}
}

func (f *flushes) Unwrap() http.ResponseWriter { return f.ResponseWriter }

func (f *flushes) FlushError() error {
	f.n <- struct{}{}
	return http.NewResponseController(f.ResponseWriter).Flush()
}

// With an interval many pieces share one flush, and the last one comes all the
// same while the target is silent.
func TestFlushInterval(t *testing.T) { onPaths(t, testFlushInterval) }
func testFlushInterval(t *testing.T, via path) {
	leaktest.Check(t)
	seen := make(chan struct{})
	target := wiretest.Target(t, func(p *wiretest.Peer) {
		p.Header()
		p.Send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
		for range 50 {
			p.Send(chunk("piece"))
		}
		wiretest.Await(t, seen, "the client's word")
		p.Send("0\r\n\r\n")
	})
	p := newProxy(t, via, proxy.Options{Upstream: groupAt(t, upstream.Options{}, target), FlushInterval: 200 * time.Millisecond})
	counted := &flushes{n: make(chan struct{}, 1000)}
	client := wiretest.Dial(t, wiretest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		counted.ResponseWriter = w
		p.ServeHTTP(counted, r)
	})))
	client.Send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
	client.Header()
	body := make([]byte, 250)
	if _, err := io.ReadFull(httputil.NewChunkedReader(client.R), body); err != nil {
		t.Error(err)
	}
	if want := strings.Repeat("piece", 50); string(body) != want {
		t.Errorf("body %q", body)
	}
	close(seen)
	client.Rest()
	if n := len(counted.n); n > 10 {
		t.Errorf("%d flushes for 50 pieces", n)
	}
}

// A negative interval flushes after each read.
func TestFlushEachRead(t *testing.T) { onPaths(t, testFlushEachRead) }
func testFlushEachRead(t *testing.T, via path) {
	leaktest.Check(t)
	body := wiretest.Pattern(256 << 10)
	target := wiretest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(body) }))
	p := newProxy(t, via, proxy.Options{Upstream: groupAt(t, upstream.Options{}, target), FlushInterval: -1})
	counted := &flushes{n: make(chan struct{}, 10000)}
	client := wiretest.Dial(t, wiretest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		counted.ResponseWriter = w
		p.ServeHTTP(counted, r)
	})))
	client.Send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
	_, got := client.Response("GET")
	wiretest.SameBytes(t, "body", []byte(got), body)
	if n := len(counted.n); n < 8 {
		t.Errorf("%d flushes", n)
	}
}
