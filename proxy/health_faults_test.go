package proxy_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// A response that is dropped for that of another target counts against its target as
// FailStatuses says, and the record distinguishes it.
func TestDroppedStatusCountsAsTheGroupSays(t *testing.T) {
	onPaths(t, testDroppedStatusCountsAsTheGroupSays)
}
func testDroppedStatusCountsAsTheGroupSays(t *testing.T, via path) {
	leaktest.Check(t)
	for name, test := range map[string]struct {
		fails []int
		want  int // of three requests, those that the first target got
	}{
		"no failure":     {nil, 3},
		"another status": {[]int{503}, 3},
		"a failure":      {[]int{404}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			first, requests := recording(t, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
			second, _ := recording(t, ok)
			g := groupAt(t, upstream.Options{Balance: upstream.First(), FailStatuses: test.fails}, first, second)
			p := newProxy(t, via, proxy.Options{Upstream: g, Retry: proxy.Retry{Statuses: []int{404}}})
			tries := make(chan culvert.Attempt, 8)
			client := wiretest.Dial(t, wiretest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				ctx, record := filters.WithResult(r.Context())
				p.ServeHTTP(w, r.WithContext(ctx))
				tries <- record.Attempts[0]
			})))
			for range 3 {
				client.Send(getShop)
				client.Status(200)
			}
			if len(requests) != test.want {
				t.Errorf("the first target got %d requests, want %d", len(requests), test.want)
			}
			if try := wiretest.Await(t, tries, "record"); try.Status != 404 || try.Err == nil {
				t.Errorf("attempt %+v", try)
			}
		})
	}
}

// The time to a tunnel's header is not its life.
func TestTimeToHeaderOfATunnel(t *testing.T) { onPaths(t, testTimeToHeaderOfATunnel) }
func testTimeToHeaderOfATunnel(t *testing.T, via path) {
	leaktest.Check(t)
	target := wiretest.Target(t, func(p *wiretest.Peer) {
		p.Header()
		p.Send("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n")
		p.Ended()
	})
	p := newProxy(t, via, proxy.Options{Upstream: groupAt(t, upstream.Options{}, target)})
	records := make(chan *culvert.Result, 1)
	client := wiretest.Dial(t, wiretest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, record := filters.WithResult(r.Context())
		p.ServeHTTP(w, r.WithContext(ctx))
		records <- record
	})))
	start := time.Now()
	client.Send("GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
	client.Header()
	open := time.Now()
	for time.Since(open) < 20*time.Millisecond {
		time.Sleep(time.Millisecond) // the tunnel lives on
	}
	handshake, life := open.Sub(start), time.Since(open)
	client.Close()
	record := wiretest.Await(t, records, "record")
	if try := record.Attempts[0]; try.TimeToHeader <= 0 || try.TimeToHeader > handshake || try.Total < life {
		t.Errorf("handshake %v, life %v, attempt %+v", handshake, life, try)
	}
}

// drip sends a header section in pieces, none of which comes late, for much longer than all of it may take.
func drip(p *wiretest.Peer) {
	_, err := io.WriteString(p.Conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX: ")
	for range 300 {
		if err != nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
		_, err = io.WriteString(p.Conn, "x")
	}
	_, _ = io.WriteString(p.Conn, "\r\n\r\n")
}

// HeaderTimeout is for the whole header section, also of an upload's response.
func TestHeaderTimeoutIsForTheWholeSection(t *testing.T) {
	onPaths(t, testHeaderTimeoutIsForTheWholeSection)
}
func testHeaderTimeoutIsForTheWholeSection(t *testing.T, via path) {
	const size = 300_000
	for name, test := range map[string]struct {
		header, body string
		target       func(*wiretest.Peer)
		own          bool // net/http's transport has no such bound
	}{
		"upload":         {"Content-Length: 300000\r\n", strings.Repeat("a", size), func(p *wiretest.Peer) { _, _ = io.CopyN(io.Discard, p.R, size); drip(p) }, false},
		"chunked upload": {"Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n0\r\n\r\n", func(p *wiretest.Peer) { p.Receive("5\r\nhello\r\n0\r\n\r\n"); drip(p) }, false},
		"behind a 103": {"Content-Length: 300000\r\n", strings.Repeat("a", size), func(p *wiretest.Peer) {
			p.Send("HTTP/1.1 103 Early Hints\r\n\r\n")
			_, _ = io.CopyN(io.Discard, p.R, size)
			drip(p)
		}, false},
		"while a body is sent": {"Content-Length: 300000\r\n", "a", drip, true},
	} {
		t.Run(name, func(t *testing.T) {
			if test.own && via == httpTransport {
				return
			}
			synctest.Test(t, func(t *testing.T) {
				var failed failures
				client, _ := inBubble(t, via, proxy.Options{OnError: failed.add}, upstream.Options{HeaderTimeout: 300 * time.Millisecond}, func(p *wiretest.Peer) {
					p.Header()
					test.target(p)
				})
				go client.Send("POST / HTTP/1.1\r\nHost: a\r\n" + test.header + "\r\n" + test.body)
				header := client.Header()
				for strings.HasPrefix(header, "HTTP/1.1 103 ") {
					header = client.Header()
				}
				if !strings.HasPrefix(header, "HTTP/1.1 504 ") {
					t.Errorf("the client got %q", header)
				}
				if e := failed.only(t); e.Kind != culvert.Timeout {
					t.Errorf("failure %v", e)
				}
			})
		})
	}
}

var errTransform = errors.New("no room")

// failing is a transform that fails at its first write or at its end.
type failing struct{ atOnce bool }

func (f failing) Write(p []byte) (int, error) {
	if f.atOnce {
		return 0, errTransform
	}
	return len(p), nil
}
func (failing) Close() error { return errTransform }

// ends hands over the failure of each request that has ended.
type ends chan error

func (ends) RequestStarted(*http.Request)                          {}
func (e ends) RequestEnded(_ *http.Request, o filters.Observation) { e <- o.Result.Err }

// A body transform that fails aborts the response. Its error is Internal: neither the client nor
// the target is to blame.
func TestFailingTransform(t *testing.T) { onPaths(t, testFailingTransform) }
func testFailingTransform(t *testing.T, via path) {
	leaktest.Check(t)
	for name, atOnce := range map[string]bool{"write": true, "end": false} {
		t.Run(name, func(t *testing.T) {
			transform := filters.OnResponse(filters.ResponseHooks{Body: func(_ *http.Request, _ int, h http.Header, _ io.Writer) io.WriteCloser {
				h.Del("Content-Length")
				return failing{atOnce}
			}})
			var failed failures
			first, requests := recording(t, ok)
			p := newProxy(t, via, proxy.Options{Upstream: groupAt(t, upstream.Options{Balance: upstream.First()}, first, wiretest.Unused(t)), OnError: failed.add})
			results := make(chan error, 8)
			h := filters.Observe(ends(results))(transform(p))
			addr := wiretest.Serve(t, h)
			for range 2 {
				client := wiretest.Dial(t, addr)
				client.Send(getShop)
				if got := client.Ended(); strings.HasSuffix(got, "0\r\n\r\n") || strings.Contains(got, "Content-Length: 0") {
					t.Errorf("the client got %q", got)
				}
				var e *culvert.Error
				if err := wiretest.Await(t, results, "result"); !errors.As(err, &e) || e.Kind != culvert.Internal || !e.HeaderSent || !errors.Is(err, errTransform) {
					t.Errorf("result %v", err)
				}
			}
			if atOnce && (len(failed.all) != 2 || failed.all[0].Kind != culvert.Internal) {
				t.Errorf("failures %v", failed.all)
			}
			if len(requests) != 2 {
				t.Errorf("the first target got %d requests", len(requests))
			}
		})
	}
}
