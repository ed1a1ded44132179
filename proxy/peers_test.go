package proxy_test

import (
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// gatewayOf is a way to stand in front of a target; told gets what its error hook is
// told.
type gatewayOf func(t *testing.T, target string, told chan<- string) http.Handler

func ofCulvert(t *testing.T, target string, told chan<- string) http.Handler {
	return newProxy(t, proxy.Options{Upstream: groupAt(t, upstream.Options{}, target),
		OnError: func(_ *http.Request, e *proxy.Error) { told <- e.Kind.String() }})
}

func ofHTTPUtil(t *testing.T, target string, told chan<- string) http.Handler {
	transport := &http.Transport{DisableCompression: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: "http", Host: target})
			r.SetXForwarded()
		},
		Transport: transport,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			told <- err.Error()
			w.WriteHeader(http.StatusBadGateway)
		},
		ErrorLog: wiretest.Quiet(),
	}
}

// TestWherePeersHurt runs what facts tell of peers through culvert and through
// httputil.ReverseProxy: what the one does right and, where it was measured, what the
// other does.
func TestWherePeersHurt(t *testing.T) {
	for _, test := range []struct {
		name              string
		run               func(t *testing.T, gateway gatewayOf) string
		culvert, httputil string
	}{
		{"golang/go#81319: hop-by-hop fields in a 103", hopsIn103, "Link", "Connection Keep-Alive Link X-Hop"},
		{"golang/go#81207: a 103 takes the filters' fields", fieldsAfter103, "kept", "lost"},
		{"anubis#1764: the query", query, "/a%2Fb//c?z=1&a=2&sig=%zz&b;c", "/a%2Fb//c?a=2&z=1"},
		{"traefik#13822: request trailers", requestTrailers, "X-Sum: 7", ""},
		{"golang/go#28239: the cause of an abort", causeOfAbort, "response body broken", ""},
		{"golang/go#20071: a client that leaves", clientLeaves, "client gone", "context canceled"},
		{"measured: status 099", status099, "502", "panic"},
		{"golang/go#80875: a frame behind the handshake", earlyFrame, "early", ""},
	} {
		for name, g := range map[string]struct {
			of   gatewayOf
			want string
		}{"culvert": {ofCulvert, test.culvert}, "httputil": {ofHTTPUtil, test.httputil}} {
			t.Run(test.name+", "+name, func(t *testing.T) {
				leaktest.Check(t)
				if got := test.run(t, g.of); got != g.want {
					t.Errorf("%q, want %q", got, g.want)
				}
			})
		}
	}
}

func hopsIn103(t *testing.T, gateway gatewayOf) string {
	target := wiretest.Replying(t, "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nConnection: X-Hop\r\nX-Hop: 1\r\nKeep-Alive: 1\r\n\r\n"+ok)
	client := wiretest.Dial(t, wiretest.Serve(t, gateway(t, target, nil)))
	client.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	_, lines, _ := strings.Cut(client.Head(), "\r\n")
	var names []string
	for line := range strings.Lines(lines) {
		if name, _, found := strings.Cut(line, ":"); found {
			names = append(names, name)
		}
	}
	return strings.Join(names, " ")
}

func fieldsAfter103(t *testing.T, gateway gatewayOf) string {
	target := wiretest.Replying(t, "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"+ok)
	h := gateway(t, target, nil)
	client := wiretest.Dial(t, wiretest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Filter", "1")
		h.ServeHTTP(w, r)
	})))
	client.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	client.Head()
	if strings.Contains(client.Head(), "X-Filter: 1") {
		return "kept"
	}
	return "lost"
}

func query(t *testing.T, gateway gatewayOf) string {
	target, heads := recording(t, ok)
	client := wiretest.Dial(t, wiretest.Serve(t, gateway(t, target, nil)))
	client.Send("GET /a%2Fb//c?z=1&a=2&sig=%zz&b;c HTTP/1.1\r\nHost: a\r\n\r\n")
	client.Status(200)
	return strings.Fields(wiretest.Await(t, heads, "request"))[1]
}

func requestTrailers(t *testing.T, gateway gatewayOf) string {
	seen := make(chan string, 1)
	target := wiretest.Target(t, func(p *wiretest.Peer) {
		p.Head()
		p.Receive("2\r\nhi\r\n0\r\n")
		seen <- strings.TrimSpace(p.Head())
		p.Send(ok)
	})
	client := wiretest.Dial(t, wiretest.Serve(t, gateway(t, target, nil)))
	client.Send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n2\r\nhi\r\n0\r\nX-Sum: 7\r\n\r\n")
	client.Status(200)
	return wiretest.Await(t, seen, "request")
}

func causeOfAbort(t *testing.T, gateway gatewayOf) string {
	told := make(chan string, 4)
	target := wiretest.Target(t, func(p *wiretest.Peer) {
		p.Head()
		p.Send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
	})
	client := wiretest.Dial(t, wiretest.Serve(t, gateway(t, target, told)))
	client.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	client.Ended()
	return wordOf(told)
}

func wordOf(told <-chan string) string {
	select {
	case word := <-told:
		return word
	default:
		return ""
	}
}

func clientLeaves(t *testing.T, gateway gatewayOf) string {
	told, asked := make(chan string, 4), make(chan struct{})
	target := wiretest.Target(t, func(p *wiretest.Peer) {
		p.Head()
		close(asked)
		p.Ended()
	})
	client := wiretest.Dial(t, wiretest.Serve(t, gateway(t, target, told)))
	client.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	wiretest.Await(t, asked, "request")
	client.Close()
	return wiretest.Await(t, told, "word of the error hook")
}

func status099(t *testing.T, gateway gatewayOf) (result string) {
	told := make(chan string, 4)
	target := wiretest.Replying(t, "HTTP/1.1 099 Odd\r\nContent-Length: 0\r\n\r\n")
	h := gateway(t, target, told)
	panicked := make(chan struct{}, 1)
	client := wiretest.Dial(t, wiretest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if v := recover(); v != nil {
				panicked <- struct{}{}
				panic(http.ErrAbortHandler)
			}
		}()
		h.ServeHTTP(w, r)
	})))
	client.Send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
	answer := client.Ended()
	if len(panicked) > 0 {
		return "panic"
	}
	return strings.TrimPrefix(answer, "HTTP/1.1 ")[:3]
}

// earlyFrame sends a frame in one piece with the handshake, and returns what the
// target gets of it by the time that the client has ended.
func earlyFrame(t *testing.T, gateway gatewayOf) string {
	got := make(chan string, 1)
	target := wiretest.Target(t, func(p *wiretest.Peer) {
		p.Head()
		p.Send("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n")
		frame, _ := io.ReadAll(p.R)
		got <- string(frame)
	})
	client := wiretest.Dial(t, wiretest.Serve(t, gateway(t, target, nil)))
	client.Send("GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\nearly")
	client.Head()
	client.End()
	return wiretest.Await(t, got, "end of the tunnel")
}

// A filter that has read the body and not put it back gets an answer at once, with a
// request buffer too (http-proxy-middleware#40).
func TestBodyReadBefore(t *testing.T) {
	leaktest.Check(t)
	for name, buffer := range map[string]*proxy.Buffer{"streamed": nil, "buffered": {}} {
		t.Run(name, func(t *testing.T) {
			var failed failures
			target := wiretest.Target(t, func(p *wiretest.Peer) { p.Ended() })
			p := newProxy(t, proxy.Options{Upstream: groupAt(t, upstream.Options{}, target), RequestBuffer: buffer, OnError: failed.add})
			client := wiretest.Dial(t, wiretest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				p.ServeHTTP(w, r)
			})))
			client.Send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello")
			client.Status(400)
			if e := failed.only(t); e.Kind != proxy.BadRequest || !strings.Contains(e.Error(), "the body was read before it came to the proxy") {
				t.Errorf("failure %v", e)
			}
		})
	}
}

// A hook that panics keeps no place at the target: MaxConns and drains would count it
// for ever.
func TestPanicGivesTheTargetBack(t *testing.T) {
	leaktest.Check(t)
	group := groupAt(t, upstream.Options{}, wiretest.Replying(t, ok))
	p := newProxy(t, proxy.Options{Upstream: group, RewriteAnswer: func(*proxy.Answer) { panic("boom") }})
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

// A target that answers an upload early and closes has its answer delivered
// (golang/go#51109).
func TestEarlyAnswerAndClose(t *testing.T) {
	leaktest.Check(t)
	target := wiretest.Target(t, func(p *wiretest.Peer) {
		p.Head()
		p.Send("HTTP/1.1 413 Too Large\r\nContent-Length: 9\r\nConnection: close\r\n\r\ntoo large")
		p.Close() // with the upload unread: the gateway's writes are answered by resets
	})
	addr := wiretest.Serve(t, newProxy(t, proxy.Options{Upstream: groupAt(t, upstream.Options{}, target)}))
	for range 50 {
		client := wiretest.Dial(t, addr)
		client.Send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n")
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			_, _ = io.CopyN(client.Conn, zeros{}, 1000000)
		}()
		resp, body := client.Answer("POST")
		if resp.StatusCode != 413 || body != "too large" {
			t.Fatalf("answer %s %q", resp.Status, body)
		}
		client.Close()
		<-sent
	}
}
