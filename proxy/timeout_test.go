package proxy_test

import (
	"context"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
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

const soon = 50 * time.Millisecond

// The longest time.Duration bounds nothing: the response is relayed, and there is no error.
func TestLongestTimeouts(t *testing.T) { onPaths(t, testLongestTimeouts) }
func testLongestTimeouts(t *testing.T, via path) {
	leaktest.Check(t)
	const longest = time.Duration(math.MaxInt64)
	target := wiretest.Target(t, func(p *wiretest.Peer) {
		p.Header()
		p.Receive("5\r\nhello\r\n0\r\n\r\n")
		p.Send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n")
		p.Send("ok")
	})
	group := groupAt(t, upstream.Options{QueueTimeout: longest, DialTimeout: longest, WriteTimeout: longest, HeaderTimeout: longest,
		IdleTimeout: longest, MaxConnAge: longest}, target)
	client := wiretest.Dial(t, wiretest.Serve(t, newProxy(t, via, proxy.Options{Upstream: group, Timeout: longest, BodyTimeout: longest,
		ReadTimeout: longest, WriteTimeout: longest, FlushInterval: longest, Retry: proxy.Retry{Timeout: longest}})))
	client.Send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n5\r\nhello\r\n")
	client.Send("0\r\n\r\n")
	if head := client.Header(); !strings.HasPrefix(head, "HTTP/1.1 200 ") {
		t.Errorf("response %q", head)
	}
	client.Receive("ok")
	for s := range group.Targets() {
		if s.Fails > 0 {
			t.Errorf("%d failures of the target", s.Fails)
		}
	}
}

// Each step of an exchange has its own bound, and each failure its kind.
func TestTimeouts(t *testing.T) { onPaths(t, testTimeouts) }
func testTimeouts(t *testing.T, via path) {
	leaktest.Check(t)
	silent := func(p *wiretest.Peer) { p.Ended() }
	half := func(p *wiretest.Peer) {
		p.Header()
		p.Send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
		p.Ended()
	}
	drops := func(p *wiretest.Peer) {
		p.Header()
		p.Send("HTTP/1.1 200 OK\r\nX: ")
		for quietFor(p, soon*3/4) { // never at the moment at which the time is over
			p.Send("x")
		}
	}
	const get, post = "GET / HTTP/1.1\r\nHost: a\r\n\r\n", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf"
	for _, test := range []struct {
		name    string
		o       proxy.Options
		u       upstream.Options
		script  func(*wiretest.Peer)
		request string
		want    string // the beginning of what the client gets
		kind    culvert.ErrorKind
	}{
		{"head", proxy.Options{}, upstream.Options{HeaderTimeout: soon}, silent, get, "HTTP/1.1 504 ", culvert.Timeout},
		{"whole exchange, head", proxy.Options{Timeout: soon}, upstream.Options{}, silent, get, "HTTP/1.1 504 ", culvert.Timeout},
		{"body", proxy.Options{BodyTimeout: soon}, upstream.Options{}, half, get, "HTTP/1.1 200 ", culvert.Timeout},
		{"whole exchange, request body", proxy.Options{Timeout: soon, ReadTimeout: time.Minute}, upstream.Options{}, silent, post, "HTTP/1.1 408 ", culvert.BodyTooSlow},
		{"head in drops", proxy.Options{}, upstream.Options{HeaderTimeout: 4 * soon}, drops, get, "HTTP/1.1 504 ", culvert.Timeout},
		{"whole exchange, body", proxy.Options{Timeout: soon}, upstream.Options{}, half, get, "HTTP/1.1 200 ", culvert.Timeout},
		{"request body", proxy.Options{ReadTimeout: soon}, upstream.Options{}, silent, post, "HTTP/1.1 408 ", culvert.BodyTooSlow},
		{"request body, buffered", proxy.Options{ReadTimeout: soon, RequestBuffer: &proxy.Buffer{}}, upstream.Options{}, silent, post, "HTTP/1.1 408 ", culvert.BodyTooSlow},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const target = "192.0.2.1:80"
				var failed failures
				test.o.OnError = failed.add
				test.u.DialContext = func(context.Context, string, string) (net.Conn, error) {
					near, far := net.Pipe()
					go func() {
						defer far.Close()
						test.script(wiretest.NewPeer(t, far))
					}()
					return near, nil
				}
				test.o.Upstream = groupAt(t, test.u, target)
				p := newProxy(t, via, test.o)
				client := dialInMemory(t, p, p, test.o.Upstream.(*upstream.Group))
				client.Send(test.request)
				got := responseOf(client)
				if !strings.HasPrefix(got, test.want) {
					t.Errorf("the client got %q, want %q", got, test.want)
				}
				failed.await(t)
				if e := failed.only(t); e.Kind != test.kind || e.HeaderSent != strings.Contains(test.want, "200") || e.ClientSide() == (e.Target == target) {
					t.Errorf("failure %#v", e)
				}
			})
		})
	}
}

// dialInMemory returns a client of a handler in front of a proxy, in memory: for a bubble. The test's end closes both, and the group.
func dialInMemory(t *testing.T, h http.Handler, p *proxy.Proxy, group *upstream.Group) *wiretest.Peer {
	t.Helper()
	client, far := net.Pipe()
	s := wiretest.Server(&http.Server{Handler: h, ErrorLog: wiretest.Quiet()})
	go func() { _ = s.Serve(wiretest.OneConn(far)) }()
	t.Cleanup(func() {
		client.Close()
		_ = s.Close()
		_ = p.Drain(context.Background())
		_ = group.Close()
		time.Sleep(time.Second) // of the bubble: net/http lets a connection linger for half of one
	})
	return wiretest.NewPeer(t, client)
}

// A target that does not read its request is given up.
func TestTargetThatReadsNothing(t *testing.T) { onPathsParallel(t, testTargetThatReadsNothing) }
func testTargetThatReadsNothing(t *testing.T, via path) {
	var failed failures
	responded := make(chan struct{})
	target := wiretest.Target(t, func(p *wiretest.Peer) {
		p.Header()
		wiretest.Await(t, responded, "response")
	})
	p := newProxy(t, via, proxy.Options{Upstream: groupAt(t, upstream.Options{WriteTimeout: soon}, target), OnError: failed.add})
	client := wiretest.Dial(t, wiretest.Serve(t, p))
	client.Send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\n")
	go func() { _, _ = io.CopyN(client.Conn, zeros{}, 100000000) }()
	client.Status(504)
	close(responded)
	if e := failed.only(t); e.Kind != culvert.Timeout || e.Target != target {
		t.Errorf("failure %#v", e)
	}
}

// A client that takes nothing is given up.
func TestWriteTimeout(t *testing.T) { onPaths(t, testWriteTimeout) }
func testWriteTimeout(t *testing.T, via path) {
	leaktest.Check(t)
	var failed failures
	target := wiretest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.Copy(w, zeros{})
	}))
	p := newProxy(t, via, proxy.Options{Upstream: groupAt(t, upstream.Options{}, target), WriteTimeout: soon, OnError: failed.add})
	client := wiretest.Dial(t, wiretest.Serve(t, p))
	client.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	client.Header()
	failed.await(t)
	if e := failed.only(t); e.Kind != culvert.ClientGone || !e.HeaderSent {
		t.Errorf("failure %#v", e)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// The bounds are for each step: a connection that is busy outlives them, and the
// next request on it finds them gone.
func TestTimeoutsAreForEachStep(t *testing.T) { onPaths(t, testTimeoutsAreForEachStep) }
func testTimeoutsAreForEachStep(t *testing.T, via path) {
	leaktest.Check(t)
	p := newProxy(t, via, proxy.Options{BodyTimeout: 2 * time.Second, ReadTimeout: 2 * time.Second, WriteTimeout: 2 * time.Second,
		Upstream: groupAt(t, upstream.Options{HeaderTimeout: 2 * time.Second, WriteTimeout: 2 * time.Second}, wiretest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_ = http.NewResponseController(w).EnableFullDuplex()
			buf := make([]byte, 1)
			for {
				n, err := r.Body.Read(buf)
				_, _ = w.Write(buf[:n])
				if err != nil {
					return
				}
				_ = http.NewResponseController(w).Flush()
			}
		})))})
	client := wiretest.Dial(t, wiretest.Serve(t, p))
	for range 2 {
		client.Send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n")
		client.Header()
		client.Receive("1\r\na\r\n")
		client.Send("1\r\nb\r\n0\r\n\r\n")
		client.Receive("1\r\nb\r\n0\r\n\r\n")
	}
}

// responseOf reads a response with its body, or as much of it as is received.
func responseOf(client *wiretest.Peer) string {
	head := client.Header()
	if strings.HasPrefix(head, "HTTP/1.1 200 ") {
		return head + client.Ended()
	}
	return head
}

// quietFor reports whether the other end neither sends anything nor closes for d.
func quietFor(p *wiretest.Peer, d time.Duration) bool {
	_ = p.SetReadDeadline(time.Now().Add(d))
	_, err := p.R.Peek(1)
	_ = p.SetReadDeadline(time.Now().Add(20 * time.Second))
	return errors.Is(err, os.ErrDeadlineExceeded)
}

// HeaderTimeout does not apply after the header was received: the body may be silent for longer,
// however the upload ends.
func TestResponseBeforeTheUploadEnds(t *testing.T) { onPaths(t, testResponseBeforeTheUploadEnds) }
func testResponseBeforeTheUploadEnds(t *testing.T, via path) {
	for name, test := range map[string]struct{ request, first, rest, status string }{
		"sent":       {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", "1\r\na\r\n", "0\r\n\r\n", "200 OK"},
		"not wanted": {expecting, "", "", "417 No"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, _ := inBubble(t, via, proxy.Options{}, upstream.Options{HeaderTimeout: soon}, func(p *wiretest.Peer) {
					p.Header()
					p.Receive(test.first)
					p.Send("HTTP/1.1 " + test.status + "\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n")
					p.Receive(test.rest)
					if !quietFor(p, 8*soon) {
						t.Error("the response was cut off")
						return
					}
					p.Send("1\r\ny\r\n0\r\n\r\n")
				})
				client.Send(test.request + test.first)
				client.Header()
				client.Receive("1\r\nx\r\n")
				client.Send(test.rest)
				client.Receive("1\r\ny\r\n0\r\n\r\n")
			})
		})
	}
}

// The time of an exchange whose body has been read is not the next one's: its connection serves on, and the
// request behind it is one that its client waits for.
func TestTimeoutAndTheNextRequest(t *testing.T) { onPaths(t, testTimeoutAndTheNextRequest) }
func testTimeoutAndTheNextRequest(t *testing.T, via path) {
	const behind = " HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody"
	synctest.Test(t, func(t *testing.T) {
		client, _ := inBubble(t, via, proxy.Options{Timeout: 10 * soon}, upstream.Options{}, func(p *wiretest.Peer) {
			for {
				if _, err := p.R.Peek(1); err != nil {
					return
				}
				silent := strings.HasPrefix(p.Header(), "POST /silent ")
				p.Receive("body")
				if silent {
					p.Ended()
					return
				}
				p.Send(ok)
			}
		})
		for range 3 {
			client.Send("POST /silent" + behind)
			client.Status(504)
			client.Send("POST /" + behind)
			client.Status(200)
		}
	})
}
