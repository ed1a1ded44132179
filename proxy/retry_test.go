package proxy_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// breaking is a target that reads a request, as far as the script says, and fails.
func breaking(t *testing.T, how string) string {
	return wiretest.Target(t, func(p *wiretest.Peer) {
		switch how {
		case "at once":
			p.Header()
			p.Reset()
		case "in the body":
			p.Header()
			p.Receive("hel")
			p.Reset()
		case "garbage":
			p.Header()
			p.Send("I am no HTTP server\r\n\r\n")
			p.Ended()
		case "503 after the body":
			p.Header()
			p.Receive("hello")
			p.Send("HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n")
			p.Ended()
		default: // a status
			p.Header()
			p.Send("HTTP/1.1 " + how + " No\r\nContent-Length: 4\r\nX-From: first\r\n\r\nlost")
			p.Ended()
		}
	})
}

// A request is retried on the next target exactly if the policy and the request allow it:
// a POST only if the policy names it (traefik#8990), and with its body (caddy#1229, #5454,
// #6259, #7546).
func TestRetry(t *testing.T) { onPaths(t, testRetry) }
func testRetry(t *testing.T, via path) {
	leaktest.Check(t)
	const (
		get   = "GET /x HTTP/1.1\r\nHost: a\r\n\r\n"
		post  = "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"
		keyed = "POST /x HTTP/1.1\r\nHost: a\r\nIdempotency-Key: 1\r\nContent-Length: 5\r\n\r\nhello"
		put   = "PUT /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
	)
	all := proxy.Retry{Errors: true, Timeouts: true, Statuses: []int{503}}
	for _, test := range []struct {
		name, first, request string
		retry                proxy.Retry
		want                 int // 200 from the second target, or the first one's fault
	}{
		{"no policy", "at once", get, proxy.Retry{}, 502},
		{"GET", "at once", get, all, 200},
		{"GET after garbage", "garbage", get, all, 200},
		{"an error, timeouts only", "at once", get, proxy.Retry{Timeouts: true}, 502},
		{"GET after a status", "503", get, all, 200},
		{"another status", "500", get, all, 500},
		{"POST", "at once", post, all, 502},
		{"POST after a status", "503", post, all, 503},
		{"POST by policy", "at once", post, proxy.Retry{Errors: true, NonIdempotent: true}, 200},
		{"POST with a key", "at once", keyed, all, 200},
		{"POST with an empty key", "at once", strings.Replace(keyed, "Key: 1", "Key:", 1), all, 502},
		{"POST with a key, in the body", "in the body", keyed, all, 200},
		{"PUT, chunked", "at once", put, all, 200},
		{"PUT, in the body", "in the body", strings.Replace(put, "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", "Content-Length: 5\r\n\r\nhello", 1), all, 200},
		{"a status after the body", "503 after the body", keyed, all, 200},
		{"body too large to be kept", "503 after the body", keyed, proxy.Retry{Statuses: []int{503}, KeepBody: 4}, 503},
		{"nothing is kept", "503 after the body", keyed, proxy.Retry{Statuses: []int{503}, KeepBody: -1}, 503},
		{"no more tries", "at once", get, proxy.Retry{Errors: true, Tries: 1}, 502},
	} {
		t.Run(test.name, func(t *testing.T) {
			second, requests := readingTarget(t)
			p := newProxy(t, via, proxy.Options{Retry: test.retry, Upstream: groupAt(t, upstream.Options{Balance: upstream.First()}, breaking(t, test.first), second)})
			client := wiretest.Dial(t, wiretest.Serve(t, p))
			client.Send(test.request)
			resp, body := client.Response("GET")
			if resp.StatusCode != test.want {
				t.Errorf("response %s %q, want %d", resp.Status, body, test.want)
			}
			if test.want != 200 {
				if len(requests) != 0 {
					t.Error("the second target got the request")
				}
				return
			}
			got := wiretest.Await(t, requests, "second try")
			wantBody := ""
			if !strings.HasPrefix(test.request, "GET") {
				wantBody = "hello"
			}
			if got.err != nil || got.RequestURI != "/x" || got.body != wantBody || body != "ok" || resp.Header.Get("X-From") != "" {
				t.Errorf("second attempt %v %q, response %q", got.err, got.body, body)
			}
		})
	}
}

// A response that could be dropped for another target's is relayed if no target is left.
func TestLastResponseIsRelayed(t *testing.T) { onPaths(t, testLastResponseIsRelayed) }
func testLastResponseIsRelayed(t *testing.T, via path) {
	leaktest.Check(t)
	p := newProxy(t, via, proxy.Options{Retry: proxy.Retry{Statuses: []int{503}},
		Upstream: groupAt(t, upstream.Options{Balance: upstream.First()}, breaking(t, "503"), breaking(t, "503"))})
	client := wiretest.Dial(t, wiretest.Serve(t, p))
	client.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	if resp, body := client.Response("GET"); resp.StatusCode != 503 || body != "lost" {
		t.Errorf("response %s %q", resp.Status, body)
	}
}

// After the header was sent there is no retry, with any policy.
func TestNoRetryAfterTheHeader(t *testing.T) { onPaths(t, testNoRetryAfterTheHeader) }
func testNoRetryAfterTheHeader(t *testing.T, via path) {
	leaktest.Check(t)
	first := wiretest.Target(t, func(p *wiretest.Peer) {
		p.Header()
		p.Send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
		p.Reset()
	})
	second, requests := readingTarget(t)
	p := newProxy(t, via, proxy.Options{Retry: proxy.Retry{Errors: true, Timeouts: true},
		Upstream: groupAt(t, upstream.Options{Balance: upstream.First()}, first, second)})
	client := wiretest.Dial(t, wiretest.Serve(t, p))
	client.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	if got := client.Ended(); !strings.HasSuffix(got, "\r\n\r\nhalf") {
		t.Errorf("the client got %q", got)
	}
	if len(requests) != 0 {
		t.Error("the second target got the request")
	}
}

func TestBadRetryOptions(t *testing.T) {
	for _, bad := range [][2]float64{{-0.1, 1}, {1.1, 1}, {0.5, -1}} {
		if b, err := proxy.NewRetryBudget(bad[0], bad[1]); b != nil || err == nil {
			t.Errorf("a budget of %v", bad)
		}
	}
	u := groupAt(t, upstream.Options{}, "a:1")
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for want, o := range map[string]proxy.Options{
		"proxy: Options.Upstream is nil":                                                             {},
		"proxy: Retry.Tries is negative":                                                             {Upstream: u, Retry: proxy.Retry{Tries: -1}},
		"proxy: Retry.Statuses: 101 is not from 200 to 999":                                          {Upstream: u, Retry: proxy.Retry{Statuses: []int{503, 101}}},
		"proxy: Retry.Statuses: 1000 is not from 200 to 999":                                         {Upstream: u, Retry: proxy.Retry{Statuses: []int{1000}}},
		`proxy: Options.RequestBuffer: directory "/tmp" without Disk`:                                {Upstream: u, RequestBuffer: &proxy.Buffer{Dir: "/tmp"}},
		"proxy: Options.ResponseBuffer: directory: stat " + dir + "/none: no such file or directory": {Upstream: u, ResponseBuffer: &proxy.Buffer{Disk: 1, Dir: dir + "/none"}},
		fmt.Sprintf("proxy: Options.RequestBuffer: directory: %q is no directory", file):             {Upstream: u, RequestBuffer: &proxy.Buffer{Disk: 1, Dir: file}},
		"proxy: Options.RequestBuffer: negative size":                                                {Upstream: u, RequestBuffer: &proxy.Buffer{Memory: -1}},
		"proxy: Options.ResponseBuffer: negative size":                                               {Upstream: u, ResponseBuffer: &proxy.Buffer{Disk: -1}},
	} {
		if p, err := proxy.New(o); p != nil || err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// A cookie stores a client's target, for plain responses and for upgrades. It is the target that
// has responded.
func TestStickyCookie(t *testing.T) { onPaths(t, testStickyCookie) }
func testStickyCookie(t *testing.T, via path) {
	leaktest.Check(t)
	const switching = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"
	plain, upgrading := wiretest.Replying(t, ok), wiretest.Replying(t, switching)
	sticky := upstream.Options{Balance: upstream.Sticky(upstream.StickyOptions{Otherwise: upstream.First()})}
	cookie := func(request string, addrs ...string) string {
		p := newProxy(t, via, proxy.Options{Upstream: groupAt(t, sticky, addrs...)})
		client := wiretest.Dial(t, wiretest.Serve(t, p))
		client.Send(request)
		head := client.Header()
		client.Close()
		_, after, _ := strings.Cut(head, "Set-Cookie: ")
		value, _, _ := strings.Cut(after, "\r\n")
		if strings.Count(head, "Set-Cookie") > 1 {
			t.Errorf("more than one cookie in %q", head)
		}
		return value
	}
	const get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
	const upgrade = "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
	alone := cookie(get, plain)
	if alone == "" {
		t.Error("no cookie")
	}
	if got := cookie(get, wiretest.Unused(t), plain); got != alone {
		t.Errorf("after a failed try the cookie is %q, want %q", got, alone)
	}
	alone = cookie(upgrade, upgrading)
	if got := cookie(upgrade, wiretest.Unused(t), upgrading); alone == "" || got != alone {
		t.Errorf("after a failed try the upgrade's cookie is %q, want %q", got, alone)
	}
	if got := cookie(upgrade, wiretest.Unused(t)); got != "" {
		t.Errorf("a refused upgrade has the cookie %q", got)
	}
}

// A kept connection that the target closes when the next request comes: what may be
// sent twice is, on another connection to the same target; what may not is an error
// (golang/go#22158).
func TestClosedKeptConnection(t *testing.T) { onPaths(t, testClosedKeptConnection) }
func testClosedKeptConnection(t *testing.T, via path) {
	leaktest.Check(t)
	const get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
	body := "Content-Length: 5\r\n\r\nhello"
	for name, test := range map[string]struct {
		request string
		retry   proxy.Retry
		status  int
	}{
		"GET":                      {get, proxy.Retry{}, 200},
		"POST":                     {"POST / HTTP/1.1\r\nHost: a\r\n" + body, proxy.Retry{Errors: true}, 502},
		"POST with a key":          {"POST / HTTP/1.1\r\nHost: a\r\nIdempotency-Key: 1\r\n" + body, proxy.Retry{Errors: true}, 200},
		"POST with a key, no copy": {"POST / HTTP/1.1\r\nHost: a\r\nIdempotency-Key: 1\r\n" + body, proxy.Retry{}, 502},
	} {
		t.Run(name, func(t *testing.T) {
			var conns atomic.Int32
			target := wiretest.Target(t, func(p *wiretest.Peer) {
				for first := conns.Add(1) == 1; ; first = false {
					r, err := http.ReadRequest(p.R)
					if err != nil {
						return
					}
					if got, _ := io.ReadAll(r.Body); r.Method == "POST" && string(got) != "hello" {
						t.Errorf("body %q", got)
					}
					p.Send(ok)
					if first {
						_, _ = p.R.Peek(1) // the next request has arrived
						p.Reset()
						return
					}
				}
			})
			p := newProxy(t, via, proxy.Options{Upstream: groupAt(t, upstream.Options{}, target), Retry: test.retry})
			client := wiretest.Dial(t, wiretest.Serve(t, p))
			client.Send(get)
			client.Status(200)
			client.Send(test.request)
			client.Status(test.status)
		})
	}
}

// refusing returns a target that reads n bytes of a body, responds with 503, and continues to read.
func refusing(t *testing.T, head string, n int) string {
	return wiretest.Target(t, func(p *wiretest.Peer) {
		p.Header()
		p.Receive(strings.Repeat("a", n))
		p.Send(head)
		p.Ended()
	})
}

const refusal = "HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n"

// A target whose response was dropped consumes no byte of the body that the next target gets, though
// the gateway was reading the body for it when it responded, and the rest exceeds KeepBody.
func TestRetryInAnUpload(t *testing.T) { onPaths(t, testRetryInAnUpload) }
func testRetryInAnUpload(t *testing.T, via path) {
	leaktest.Check(t)
	const kept, rest = 40_000, 1_000_000
	replayed, whole := make(chan struct{}), make(chan struct{})
	second := wiretest.Target(t, func(p *wiretest.Peer) {
		p.Header()
		p.Receive(strings.Repeat("a", kept))
		close(replayed)
		p.Receive(strings.Repeat("b", rest))
		p.Send(ok)
		<-whole
	})
	u := groupAt(t, upstream.Options{Balance: upstream.First()}, refusing(t, refusal, kept), second)
	p := newProxy(t, via, proxy.Options{Upstream: u, Retry: proxy.Retry{Statuses: []int{503}, NonIdempotent: true}})
	client := wiretest.Dial(t, wiretest.Serve(t, p))
	client.Send(fmt.Sprintf("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n", kept+rest) + strings.Repeat("a", kept))
	wiretest.Await(t, replayed, "beginning at the second target")
	client.Send(strings.Repeat("b", rest))
	client.Status(200)
	close(whole)
}

// If no target is left the response is relayed, and the rest of the body is sent.
func TestNoRetryInAnUpload(t *testing.T) { onPaths(t, testNoRetryInAnUpload) }
func testNoRetryInAnUpload(t *testing.T, via path) {
	leaktest.Check(t)
	const rest = 100_000
	target := wiretest.Target(t, func(p *wiretest.Peer) {
		p.Header()
		p.Receive("aaaaa")
		p.Send("HTTP/1.1 503 No\r\nTransfer-Encoding: chunked\r\n\r\n")
		p.Receive(strings.Repeat("b", rest))
		p.Send("0\r\n\r\n")
	})
	u := groupAt(t, upstream.Options{}, target)
	p := newProxy(t, via, proxy.Options{Upstream: u, Retry: proxy.Retry{Statuses: []int{503}, NonIdempotent: true}})
	client := wiretest.Dial(t, wiretest.Serve(t, p))
	client.Send(fmt.Sprintf("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\naaaaa", 5+rest))
	client.Header()
	client.Send(strings.Repeat("b", rest))
	client.Receive("0\r\n\r\n")
}

// The end of a body with trailers may be read while the header for the next target is made: net/http then
// writes them into the client's map. If that map is shared, the race detector sometimes reports it here.
func TestRetryWithTrailers(t *testing.T) { onPaths(t, testRetryWithTrailers) }
func testRetryWithTrailers(t *testing.T, via path) {
	leaktest.Check(t)
	second := wiretest.Target(t, func(p *wiretest.Peer) {
		if r, err := http.ReadRequest(p.R); err != nil {
			t.Error(err)
		} else if body, err := io.ReadAll(r.Body); err != nil || string(body) != "ab" || r.Trailer.Get("X-Sum") != "1" {
			t.Errorf("body %q, trailers %v (%v)", body, r.Trailer, err)
		}
		p.Send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
	})
	responded := make(chan struct{}, 1)
	first := wiretest.Target(t, func(p *wiretest.Peer) {
		p.Header()
		p.Send(refusal)
		responded <- struct{}{}
		p.Ended()
	})
	for range 30 {
		u := groupAt(t, upstream.Options{Balance: upstream.First()}, first, second)
		p := newProxy(t, via, proxy.Options{Upstream: u, Retry: proxy.Retry{Statuses: []int{503}, NonIdempotent: true}})
		client := wiretest.Dial(t, wiretest.Serve(t, p))
		client.Send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n1\r\na\r\n")
		wiretest.Await(t, responded, "first response")
		client.Send("1\r\nb\r\n0\r\nX-Sum: 1\r\n\r\n")
		client.Status(200)
		client.Close()
	}
}

// A kept connection that breaks when the body has been read, and can't be followed by another one to
// the same target, is no reason to send another target half a request, and to blame it.
func TestNoRetryWithoutTheBody(t *testing.T) { onPaths(t, testNoRetryWithoutTheBody) }
func testNoRetryWithoutTheBody(t *testing.T, via path) {
	leaktest.Check(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	second, requests := readingTarget(t)
	u := groupAt(t, upstream.Options{Balance: upstream.First()}, l.Addr().String(), second)
	p := newProxy(t, via, proxy.Options{Upstream: u})
	reading, broken := make(chan struct{}), make(chan struct{})
	client := wiretest.Dial(t, wiretest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			r.Body = &announced{r.Body, 1, reading, broken}
		}
		p.ServeHTTP(w, r)
	})))
	client.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	first := wiretest.NewPeer(t, conn)
	first.Header()
	first.Send(ok)
	client.Status(200)
	client.Send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello")
	wiretest.Await(t, reading, "read of the body")
	l.Close()
	first.Reset()
	close(broken)
	client.Status(502)
	for s := range u.Targets() {
		if s.Target.Addr == second && s.Fails > 0 {
			t.Error("the second target is blamed")
		}
	}
	if got := seen(requests); got != "" {
		t.Errorf("the second target got %q", got)
	}
}

// announced reports one of its reads, and waits before it.
type announced struct {
	io.ReadCloser
	which   int
	reading chan<- struct{}
	proceed <-chan struct{}
}

func (a *announced) Read(p []byte) (int, error) {
	if a.which--; a.which == 0 {
		close(a.reading)
		<-a.proceed
	}
	return a.ReadCloser.Read(p)
}

// A response is not held while its request waits for another target: two would wait for each other's.
func TestDroppedStatusWaitsForNoTarget(t *testing.T) { onPaths(t, testDroppedStatusWaitsForNoTarget) }
func testDroppedStatusWaitsForNoTarget(t *testing.T, via path) {
	leaktest.Check(t)
	var both sync.WaitGroup
	both.Add(2)
	busy := func() upstream.Target {
		var first sync.Once
		addr := wiretest.Target(t, func(p *wiretest.Peer) {
			p.Header()
			first.Do(func() {
				both.Done()
				both.Wait()
			})
			p.Send("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
		})
		return upstream.Target{Addr: addr, MaxConns: 1}
	}
	g := groupOf(t, upstream.Options{Queue: 10, QueueTimeout: time.Hour}, busy(), busy())
	addr := wiretest.Serve(t, newProxy(t, via, proxy.Options{Upstream: g, Retry: proxy.Retry{Statuses: []int{503}}}))
	clients := [2]*wiretest.Peer{wiretest.Dial(t, addr), wiretest.Dial(t, addr)}
	for _, client := range clients {
		client.Send(getShop)
	}
	// One of the two may find the other's target free again.
	for _, client := range clients {
		client.Header()
	}
}
