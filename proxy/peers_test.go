package proxy_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
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

// scene is what a gateway stands in.
type scene struct {
	target   string        // where requests are sent; unused with a Source
	kinds    chan<- string // receives the kind of each failure, if not nil
	around   []culvert.Filter
	upstream upstream.Options
	retry    proxy.Retry
}

// gatewayIn makes a gateway for a scene.
func gatewayIn(t *testing.T, via path, s scene) http.Handler {
	targets := []string{s.target}
	if s.upstream.Source != nil {
		targets = nil
	}
	return filters.NewChain(s.around...).Then(newProxy(t, via, proxy.Options{Upstream: groupAt(t, s.upstream, targets...), Retry: s.retry,
		OnError: s.onError}))
}

func (s scene) onError(_ *http.Request, e *culvert.Error) {
	if s.kinds != nil {
		s.kinds <- e.Kind.String()
	}
}

// TestWherePeersHurt runs through culvert what hurt the users of other proxies: each row names the report.
func TestWherePeersHurt(t *testing.T) { onPathsParallel(t, testWherePeersHurt) }
func testWherePeersHurt(t *testing.T, via path) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, via path) string
		want string
	}{
		{"golang/go#81319: hop-by-hop fields in a 103", hopsIn103, "Link"},
		{"golang/go#80875: hop-by-hop fields in a 101", hopsIn101, "Connection Sec-Websocket-Accept Upgrade"},
		{"golang/go#80875: a frame behind the handshake", earlyFrame, "early"},
		{"golang/go#80875: the connection of a 101 that is not valid", refused101, "closed"},
		{"golang/go#81207: a 103 takes the filters' fields", fieldsAfter103, "kept"},
		{"anubis#1764, CVE-2022-2880: the query", query, "/a%2Fb//c?z=1&a=2&sig=%zz&b;c"},
		{"traefik#13822: request trailers", requestTrailers, "X-Sum: 7"},
		{"golang/go#28239: the cause of an abort", causeOfAbort, "response body broken"},
		{"golang/go#20071: a client that leaves", clientLeaves, "client gone"},
		{"golang/go#22158, caddy#1229: a POST with a key on a connection that closes", keyedPost, "200"},
		{"golang/go#51109: early responses to uploads that are not read", earlyResponses, "413 too large"},
		{"golang/go#23427: requests of a connection", requestsOfAConnection, "2"},
		{"golang/go#34511: a name that leads elsewhere", movedName, "new"},
		{"golang/go#50580: a filter's field that the client names in Connection", fieldInConnection, "alice"},
		{"caddy#5652: a body over the limit", bodyOverTheLimit, "413"},
		{"http-proxy-middleware#40: a body that was read before", bodyReadBefore, "400"},
		{"measured: status 099", status099, "502"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := test.run(t, via); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

func hopsIn103(t *testing.T, via path) string {
	target := wiretest.Replying(t, "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nConnection: X-Hop\r\nX-Hop: 1\r\nKeep-Alive: 1\r\n\r\n"+ok)
	client := wiretest.Dial(t, wiretest.Serve(t, gatewayIn(t, via, scene{target: target})))
	client.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	return namesOf(client.Header())
}

// namesOf returns the names of a header section's fields in order.
func namesOf(head string) string {
	var names []string
	for line := range strings.Lines(head) {
		if name, _, found := strings.Cut(line, ":"); found {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

const handshake = "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"

func hopsIn101(t *testing.T, via path) string {
	target := wiretest.Target(t, func(p *wiretest.Peer) {
		p.Header()
		p.Send("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: 1\r\nProxy-Authenticate: Basic\r\n" +
			"Upgrade: websocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n")
	})
	client := wiretest.Dial(t, wiretest.Serve(t, gatewayIn(t, via, scene{target: target})))
	client.Send(handshake)
	return namesOf(client.Header())
}

// refused101 returns the state of the connection to a target that switches to a protocol
// that was not requested.
func refused101(t *testing.T, via path) string {
	responded, state := make(chan struct{}), make(chan string, 1)
	target := wiretest.Target(t, func(p *wiretest.Peer) {
		p.Header()
		p.Send("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n")
		<-responded
		_ = p.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
		if _, err := p.R.ReadByte(); errors.Is(err, os.ErrDeadlineExceeded) {
			state <- "open"
		}
		state <- "closed"
	})
	client := wiretest.Dial(t, wiretest.Serve(t, gatewayIn(t, via, scene{target: target})))
	client.Send(handshake)
	client.Status(502)
	close(responded)
	return wiretest.Await(t, state, "the connection's end")
}

func fieldsAfter103(t *testing.T, via path) string {
	target := wiretest.Replying(t, "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"+ok)
	h := gatewayIn(t, via, scene{target: target})
	client := wiretest.Dial(t, wiretest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Filter", "1")
		h.ServeHTTP(w, r)
	})))
	client.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	client.Header()
	if strings.Contains(client.Header(), "X-Filter: 1") {
		return "kept"
	}
	return "lost"
}

func query(t *testing.T, via path) string {
	target, heads := recording(t, ok)
	client := wiretest.Dial(t, wiretest.Serve(t, gatewayIn(t, via, scene{target: target})))
	client.Send("GET /a%2Fb//c?z=1&a=2&sig=%zz&b;c HTTP/1.1\r\nHost: a\r\n\r\n")
	client.Status(200)
	return strings.Fields(wiretest.Await(t, heads, "request"))[1]
}

func requestTrailers(t *testing.T, via path) string {
	seen := make(chan string, 1)
	target := wiretest.Target(t, func(p *wiretest.Peer) {
		p.Header()
		p.Receive("2\r\nhi\r\n0\r\n")
		seen <- strings.TrimSpace(p.Header())
		p.Send(ok)
	})
	client := wiretest.Dial(t, wiretest.Serve(t, gatewayIn(t, via, scene{target: target})))
	client.Send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n2\r\nhi\r\n0\r\nX-Sum: 7\r\n\r\n")
	client.Status(200)
	return wiretest.Await(t, seen, "request")
}

func causeOfAbort(t *testing.T, via path) string {
	kinds := make(chan string, 4)
	target := wiretest.Target(t, func(p *wiretest.Peer) {
		p.Header()
		p.Send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
	})
	client := wiretest.Dial(t, wiretest.Serve(t, gatewayIn(t, via, scene{target: target, kinds: kinds})))
	client.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	client.Ended()
	return kindOf(kinds)
}

func kindOf(kinds <-chan string) string {
	select {
	case kind := <-kinds:
		return kind
	default:
		return ""
	}
}

func clientLeaves(t *testing.T, via path) string {
	kinds, arrived := make(chan string, 4), make(chan struct{})
	target := wiretest.Target(t, func(p *wiretest.Peer) {
		p.Header()
		close(arrived)
		p.Ended()
	})
	client := wiretest.Dial(t, wiretest.Serve(t, gatewayIn(t, via, scene{target: target, kinds: kinds})))
	client.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	wiretest.Await(t, arrived, "request")
	client.Close()
	return wiretest.Await(t, kinds, "call of OnError")
}

func status099(t *testing.T, via path) string {
	target := wiretest.Replying(t, "HTTP/1.1 099 Odd\r\nContent-Length: 0\r\n\r\n")
	client := wiretest.Dial(t, wiretest.Serve(t, gatewayIn(t, via, scene{target: target})))
	client.Send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
	return strings.TrimPrefix(client.Ended(), "HTTP/1.1 ")[:3]
}

// earlyFrame sends a frame in one piece with the handshake, and returns what the
// target gets of it by the time that the client has ended.
func earlyFrame(t *testing.T, via path) string {
	got := make(chan string, 1)
	target := wiretest.Target(t, func(p *wiretest.Peer) {
		p.Header()
		p.Send("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n")
		frame, _ := io.ReadAll(p.R)
		got <- string(frame)
	})
	client := wiretest.Dial(t, wiretest.Serve(t, gatewayIn(t, via, scene{target: target})))
	client.Send(handshake + "early")
	client.Header()
	client.End()
	return wiretest.Await(t, got, "end of the tunnel")
}

// keyedPost sends a POST that may be repeated over a connection that its target closes
// just then.
func keyedPost(t *testing.T, via path) string {
	var conns atomic.Int32
	target := wiretest.Target(t, func(p *wiretest.Peer) {
		first := conns.Add(1) == 1
		for range 2 {
			if r, err := http.ReadRequest(p.R); err == nil {
				_, _ = io.Copy(io.Discard, r.Body)
				p.Send(ok)
			}
			if first {
				_, _ = p.R.Peek(1) // the next request has arrived
				p.Reset()
				return
			}
		}
	})
	client := wiretest.Dial(t, wiretest.Serve(t, gatewayIn(t, via, scene{target: target, retry: proxy.Retry{Errors: true}})))
	client.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	client.Status(200)
	client.Send("POST / HTTP/1.1\r\nHost: a\r\nIdempotency-Key: 1\r\nContent-Length: 5\r\n\r\nhello")
	resp, _ := client.Response("POST")
	return fmt.Sprint(resp.StatusCode)
}

// earlyResponses uploads to a target that responds at once and closes, with the upload unread. As on a busy machine a write
// fails before the gateway has read the response. The stress program does so over sockets.
func earlyResponses(t *testing.T, via path) (result string) {
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { time.Sleep(time.Hour) }) // all of them end
		dial := func(context.Context, string, string) (net.Conn, error) {
			near, far := net.Pipe()
			c := &resetConn{Conn: near, room: 20000, reset: make(chan struct{})}
			go func() {
				defer far.Close()
				<-c.reset
				_, _ = io.WriteString(far, "HTTP/1.1 413 Too Large\r\nContent-Length: 9\r\nConnection: close\r\n\r\ntoo large")
			}()
			return c, nil
		}
		near, far := net.Pipe()
		s := wiretest.Server(&http.Server{Handler: gatewayIn(t, via, scene{target: "192.0.2.1:80", upstream: upstream.Options{DialContext: dial}}), ErrorLog: wiretest.Quiet()})
		_ = s.Serve(wiretest.OneConn(far)) // the connection is served on
		t.Cleanup(func() {
			near.Close()
			_ = s.Close()
		})
		client := wiretest.NewPeer(t, near)
		client.Send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n")
		go func() { _, _ = io.CopyN(near, zeros{}, 1000000) }()
		resp, body := client.Response("POST")
		result = fmt.Sprint(resp.StatusCode, " ", body)
	})
	return result
}

// resetConn is a connection whose other end closes it with bytes unread: a write that there is no room for fails.
type resetConn struct {
	net.Conn
	room  int
	reset chan struct{} // closed by the write that fails, and by Close
	once  sync.Once
}

func (c *resetConn) Write(p []byte) (int, error) {
	if c.room -= len(p); c.room >= 0 {
		return len(p), nil
	}
	c.once.Do(func() { close(c.reset) })
	return 0, &net.OpError{Op: "write", Net: "tcp", Err: os.NewSyscallError("write", syscall.EPIPE)}
}

func (c *resetConn) Close() error {
	c.once.Do(func() { close(c.reset) })
	return c.Conn.Close()
}

// requestsOfAConnection returns how many of four requests the target's first
// connection got, where MaxConnRequests is two.
func requestsOfAConnection(t *testing.T, via path) string {
	var conns, first atomic.Int32
	target := wiretest.Target(t, func(p *wiretest.Peer) {
		is1st := conns.Add(1) == 1
		for {
			r, err := http.ReadRequest(p.R)
			if err != nil {
				return
			}
			if is1st {
				first.Add(1)
			}
			p.Send(ok)
			if r.Close {
				return
			}
		}
	})
	client := wiretest.Dial(t, wiretest.Serve(t, gatewayIn(t, via, scene{target: target, upstream: upstream.Options{MaxConnRequests: 2}})))
	for range 4 {
		client.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		client.Status(200)
	}
	return fmt.Sprint(first.Load())
}

// movedName returns which target responds when the group's source has replaced the address.
func movedName(t *testing.T, via path) string {
	moves := newSource(responding(t, "old"))
	client := wiretest.Dial(t, wiretest.Serve(t, gatewayIn(t, via, scene{upstream: upstream.Options{Source: moves}})))
	request := func() string {
		client.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		_, body := client.Response("GET")
		return body
	}
	wiretest.Await(t, moves.taken, "first address")
	if first := request(); first != "old" {
		t.Errorf("%q at first", first)
	}
	moves.addrs <- responding(t, "new")
	wiretest.Await(t, moves.taken, "second address")
	return request()
}

// source delivers one address after the other.
type source struct {
	addrs chan string
	taken chan struct{} // the group knows the address
}

func newSource(first string) *source {
	s := &source{addrs: make(chan string, 1), taken: make(chan struct{}, 2)}
	s.addrs <- first
	return s
}

func (s *source) Watch(ctx context.Context, set func(...upstream.Target) error) {
	for {
		select {
		case addr := <-s.addrs:
			_ = set(upstream.Target{Addr: addr})
			s.taken <- struct{}{}
		case <-ctx.Done():
			return
		}
	}
}

func responding(t *testing.T, body string) string {
	return wiretest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }))
}

// fieldInConnection lets a client name the field that a filter sets for the target,
// and returns what the target gets of it (CVE-2021-32813 and others).
func fieldInConnection(t *testing.T, via path) string {
	target, heads := recording(t, ok)
	user := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.Header.Set("X-User", "alice")
			next.ServeHTTP(w, r)
		})
	}
	client := wiretest.Dial(t, wiretest.Serve(t, gatewayIn(t, via, scene{target: target, around: []culvert.Filter{user}})))
	client.Send("GET / HTTP/1.1\r\nHost: a\r\nConnection: X-User\r\n\r\n")
	client.Status(200)
	_, after, _ := strings.Cut(wiretest.Await(t, heads, "request"), "X-User: ")
	name, _, _ := strings.Cut(after, "\r\n")
	return name
}

// statusOf sends a POST of five bytes through a filter and returns the response's status.
func statusOf(t *testing.T, via path, around culvert.Filter) string {
	target := wiretest.Target(t, func(p *wiretest.Peer) { p.Ended() })
	client := wiretest.Dial(t, wiretest.Serve(t, gatewayIn(t, via, scene{target: target, around: []culvert.Filter{around}})))
	client.Send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello")
	resp, _ := client.Response("POST")
	return fmt.Sprint(resp.StatusCode)
}

func bodyOverTheLimit(t *testing.T, via path) string {
	return statusOf(t, via, func(next http.Handler) http.Handler { return http.MaxBytesHandler(next, 4) })
}

func bodyReadBefore(t *testing.T, via path) string {
	return statusOf(t, via, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			next.ServeHTTP(w, r)
		})
	})
}

// If a filter has read the body and not replaced it, the client gets a response at once,
// also with a request buffer (http-proxy-middleware#40).
func TestBodyReadBefore(t *testing.T) { onPaths(t, testBodyReadBefore) }
func testBodyReadBefore(t *testing.T, via path) {
	leaktest.Check(t)
	for name, buffer := range map[string]*proxy.Buffer{"streamed": nil, "buffered": {}} {
		t.Run(name, func(t *testing.T) {
			var failed failures
			target := wiretest.Target(t, func(p *wiretest.Peer) { p.Ended() })
			p := newProxy(t, via, proxy.Options{Upstream: groupAt(t, upstream.Options{}, target), RequestBuffer: buffer, OnError: failed.add})
			client := wiretest.Dial(t, wiretest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				p.ServeHTTP(w, r)
			})))
			client.Send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello")
			client.Status(400)
			if e := failed.only(t); e.Kind != culvert.BadRequest || !strings.Contains(e.Error(), "the body was read before it came to the proxy") {
				t.Errorf("failure %v", e)
			}
		})
	}
}

// A hook that panics keeps no place at the target: MaxConns and drains would count it
// for ever.
func TestPanicGivesTheTargetBack(t *testing.T) { onPaths(t, testPanicGivesTheTargetBack) }
func testPanicGivesTheTargetBack(t *testing.T, via path) {
	leaktest.Check(t)
	group := groupAt(t, upstream.Options{}, wiretest.Replying(t, ok))
	p := newProxy(t, via, proxy.Options{Upstream: group, ModifyResponse: func(*proxy.Response) { panic("boom") }})
	panicked := make(chan any, 1)
	client := wiretest.Dial(t, wiretest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() { panicked <- recover() }()
		p.ServeHTTP(w, r)
	})))
	client.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	if v := wiretest.Await(t, panicked, "panic"); v != "boom" {
		t.Errorf("panic %v", v)
	}
	for s := range group.Targets() {
		if s.InFlight != 0 || s.Fails != 0 || group.InFlight() != 0 {
			t.Errorf("%d in flight at the target, %d in the group, %d failures", s.InFlight, group.InFlight(), s.Fails)
		}
	}
	if err := p.Drain(t.Context()); err != nil {
		t.Error(err)
	}
}
