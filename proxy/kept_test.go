package proxy_test

import (
	"crypto/tls"
	"net"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// A connection on which the end of a response is in doubt is not used again (RFC 9112 sections 6.1 and 6.3), though nothing
// is behind it. net/http's transport keeps such connections.
func TestDoubtfulFraming(t *testing.T) {
	leaktest.Check(t)
	const chunks = "\r\n2\r\nok\r\n0\r\n\r\n"
	for name, test := range map[string]struct {
		method, response string
		status, conns    int
	}{
		"chunks":                 {"GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n" + chunks, 200, 1},
		"chunks beside a length": {"GET", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n" + chunks, 200, 2},
		"a length beside chunks": {"GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 12\r\n" + chunks, 200, 2},
		"both, for HEAD":         {"HEAD", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n", 200, 2},
		"both, of a 304":         {"GET", "HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n", 304, 2},
		"a coding in HTTP/1.0":   {"GET", "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\nok", 200, 2},
		"a length in HTTP/1.0":   {"GET", "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok", 200, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var conns atomic.Int32
			target := wiretest.Target(t, func(p *wiretest.Peer) {
				conns.Add(1)
				for {
					if _, err := p.R.Peek(1); err != nil {
						return
					}
					p.Header()
					p.Send(test.response)
				}
			})
			p := newProxy(t, ownExchange, proxy.Options{Upstream: groupAt(t, upstream.Options{}, target)})
			for range 2 {
				w := httptest.NewRecorder()
				p.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), test.method, "/", nil))
				if w.Code != test.status || test.method == "GET" && test.status == 200 && w.Body.String() != "ok" {
					t.Errorf("%d %q", w.Code, w.Body)
				}
			}
			if n := int(conns.Load()); n != test.conns {
				t.Errorf("%d connections, want %d", n, test.conns)
			}
		})
	}
}

// If a target sends bytes after its response, in one piece with it, they belong to no request: the
// connection is not used again. net/http's transport offers the connection before it has looked
// (transport.go, readLoop), and sometimes returns those bytes as the response to the next request.
func TestBytesBehindAResponse(t *testing.T) {
	leaktest.Check(t)
	for name, response := range map[string]string{
		"length": "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
		"chunks": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
		"none":   "HTTP/1.1 204 No Content\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			var conns atomic.Int32
			target := wiretest.Target(t, func(p *wiretest.Peer) {
				conns.Add(1)
				p.Header()
				p.Send(response + "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison")
				p.Ended()
			})
			client := wiretest.Dial(t, gateway(t, ownExchange, target))
			for range 3 {
				client.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
				if _, body := client.Response("GET"); strings.Contains(body, "poison") {
					t.Fatal("the client got bytes that belong to no response")
				}
			}
			if n := conns.Load(); n != 3 {
				t.Errorf("%d connections for three requests", n)
			}
		})
	}
}

// The only target gets a request once more if it breaks a connection off that was kept, and only then: one that has
// begun a response has had the request.
func TestOnlyTargetBreaksOff(t *testing.T) { onPaths(t, testOnlyTargetBreaksOff) }
func testOnlyTargetBreaksOff(t *testing.T, via path) {
	leaktest.Check(t)
	for name, test := range map[string]struct {
		first    string // what it responds to the first request of each connection, "" for nothing
		second   string // before it resets the connection
		requests int32
	}{
		"a fresh connection":                          {"", "", 1},
		"a kept connection":                           {ok, "", 3}, // the first, the one that is lost, and again
		"a kept connection with a malformed response": {ok, "I am no HTTP server\r\n\r\n", 2},
		"a kept connection with half a response":      {ok, "HTTP/1.1 200 OK\r\n", 2},
	} {
		t.Run(name, func(t *testing.T) {
			var requests atomic.Int32
			target := wiretest.Target(t, func(p *wiretest.Peer) {
				p.Header()
				requests.Add(1)
				if test.first == "" {
					return
				}
				p.Send(test.first)
				if _, err := p.R.Peek(1); err != nil {
					return
				}
				requests.Add(1)
				if test.second == "" {
					p.Reset()
					return
				}
				p.Header()
				p.Send(test.second)
				p.End()
			})
			p := newProxy(t, via, proxy.Options{Upstream: groupAt(t, upstream.Options{}, target), Retry: proxy.Retry{Errors: true}})
			client := wiretest.Dial(t, wiretest.Serve(t, p))
			client.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
			if resp, _ := client.Response("GET"); test.first == "" && resp.StatusCode != 502 {
				t.Errorf("response %s", resp.Status)
			}
			if test.first != "" {
				client.Send("DELETE / HTTP/1.1\r\nHost: a\r\n\r\n") // net/http's transport does not repeat it by itself
				want := 200
				if test.second != "" {
					want = 502
				}
				client.Status(want)
			}
			if n := requests.Load(); n != test.requests {
				t.Errorf("%d requests, want %d", n, test.requests)
			}
		})
	}
}

// Of several targets, the one that has broken a kept connection off gets the request once more, and none that has
// broken a fresh one off.
func TestOneOfSeveralBreaksOff(t *testing.T) { onPaths(t, testOneOfSeveralBreaksOff) }
func testOneOfSeveralBreaksOff(t *testing.T, via path) {
	leaktest.Check(t)
	var fresh, kept atomic.Int32 // requests
	first := wiretest.Target(t, func(p *wiretest.Peer) {
		p.Header()
		fresh.Add(1)
		p.Reset()
	})
	second := wiretest.Target(t, func(p *wiretest.Peer) {
		p.Header()
		kept.Add(1)
		p.Send(ok)
		if _, err := p.R.Peek(1); err == nil {
			kept.Add(1)
			p.Reset()
		}
	})
	u := groupAt(t, upstream.Options{Balance: upstream.First()}, first, second)
	if err := u.Set(upstream.Target{Addr: first, MaxFails: -1}, upstream.Target{Addr: second, MaxFails: -1}); err != nil {
		t.Fatal(err)
	}
	client := wiretest.Dial(t, wiretest.Serve(t, newProxy(t, via, proxy.Options{Upstream: u, Retry: proxy.Retry{Errors: true}})))
	for range 2 {
		client.Send("DELETE / HTTP/1.1\r\nHost: a\r\n\r\n")
		client.Status(200)
	}
	if f, k := fresh.Load(), kept.Load(); f != 2 || k != 3 {
		t.Errorf("the target that breaks fresh connections off got %d requests, the other one %d, want 2 and 3", f, k)
	}
}

// TestLastBreaksOff: a request that goes over a second connection, after the one that would have ended
// with it, does not end that one too. net/http's transport counts no requests.
func TestLastBreaksOff(t *testing.T) {
	leaktest.Check(t)
	heads := make(chan string, 8)
	var conns atomic.Int32
	target := wiretest.Target(t, func(p *wiretest.Peer) {
		first := conns.Add(1) == 1
		for {
			if _, err := p.R.Peek(1); err != nil {
				return
			}
			heads <- p.Header()
			if first && len(heads) == 2 {
				p.Reset()
				return
			}
			p.Send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		}
	})
	client := wiretest.Dial(t, wiretest.Serve(t, newProxy(t, ownExchange, proxy.Options{Upstream: groupAt(t, upstream.Options{MaxConnRequests: 2}, target)})))
	for range 2 {
		client.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		client.Status(200)
	}
	close(heads)
	var closes []bool
	for head := range heads {
		closes = append(closes, strings.Contains(head, "Connection: close"))
	}
	if want := []bool{false, true, false}; !slices.Equal(closes, want) {
		t.Errorf("Connection: close in %v, want %v", closes, want)
	}
}

// behind is a response followed by bytes that belong to no request. Its body is longer than what a
// connection reads ahead, so that those bytes are not read with it.
var behind = "HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n\r\n" + strings.Repeat("b", 9000) + "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison"

// A request that waits for a connection of its own takes one that comes to rest before, unless there
// is something left on that. net/http's transport promises nothing here (TestBytesBehindAResponse).
func TestBytesBehindAResponseWhileDialling(t *testing.T) {
	leaktest.Check(t)
	arrived, respond := make(chan struct{}, 9), make(chan struct{}) // a request may be sent again
	dialling, dial := make(chan struct{}), make(chan struct{})
	var conns, dials atomic.Int32
	target := wiretest.Target(t, func(p *wiretest.Peer) {
		first := conns.Add(1) == 1
		if _, err := p.R.Peek(1); err != nil {
			return // dialled for a request that another connection has taken
		}
		p.Header()
		arrived <- struct{}{}
		<-respond
		if !first {
			p.Send(ok)
			return
		}
		p.Send(behind)
		p.Ended()
	})
	slow := &net.Dialer{Control: func(string, string, syscall.RawConn) error {
		if dials.Add(1) == 2 {
			close(dialling)
			<-dial
		}
		return nil
	}}
	addr := wiretest.Serve(t, newProxy(t, ownExchange, proxy.Options{Upstream: groupAt(t, upstream.Options{Dialer: slow}, target)}))
	first, second := wiretest.Dial(t, addr), wiretest.Dial(t, addr)
	first.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	wiretest.Await(t, arrived, "request")
	second.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	wiretest.Await(t, dialling, "second dial")
	close(respond)
	first.Response("GET")
	// The third finds the first connection in use, or idle.
	third := wiretest.Dial(t, addr)
	third.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	if _, body := third.Response("GET"); body != "ok" {
		t.Errorf("the third client got %q", body)
	}
	close(dial)
	if _, body := second.Response("GET"); body != "ok" {
		t.Errorf("the second client got %q", body)
	}
}

// Over TLS the bytes are in the record that the response ends in, and are decrypted with it. net/http's transport promises
// nothing here.
func TestBytesBehindAResponseOverTLS(t *testing.T) {
	leaktest.Check(t)
	s := httptest.NewTLSServer(nil)
	config := &tls.Config{Certificates: s.TLS.Certificates, DynamicRecordSizingDisabled: true}
	s.Close()
	for name, test := range map[string]struct {
		response string
		conns    int32
	}{
		"something": {behind, 3},
		"nothing":   {strings.TrimSuffix(behind, behind[strings.LastIndex(behind, "HTTP/"):]), 1},
	} {
		t.Run(name, func(t *testing.T) {
			var conns atomic.Int32
			target := wiretest.Target(t, func(p *wiretest.Peer) {
				conns.Add(1)
				p = wiretest.NewPeer(t, tls.Server(p.Conn, config))
				for {
					if _, err := p.R.Peek(1); err != nil {
						return
					}
					p.Header()
					p.Send(test.response)
				}
			})
			client := wiretest.Dial(t, gatewayOver(t, ownExchange, upstream.Options{Scheme: "https", TLSConfig: &tls.Config{InsecureSkipVerify: true}}, target))
			for range 3 {
				client.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
				if _, body := client.Response("GET"); len(body) != 9000 {
					t.Fatal("the client got bytes that belong to no response")
				}
			}
			if n := conns.Load(); n != test.conns {
				t.Errorf("%d connections for three requests, want %d", n, test.conns)
			}
		})
	}
}

// gatewayOver serves a proxy in front of a group.
func gatewayOver(t *testing.T, via path, o upstream.Options, target string) string {
	return wiretest.Serve(t, newProxy(t, via, proxy.Options{Upstream: groupAt(t, o, target)}))
}

// A connection on which the gateway has sent "Connection: close" carries no other request (RFC 9112
// section 9.6), also if the target does not close it.
func TestRequestThatCloses(t *testing.T) { onPaths(t, testRequestThatCloses) }
func testRequestThatCloses(t *testing.T, via path) {
	leaktest.Check(t)
	var conns atomic.Int32
	target := wiretest.Target(t, func(p *wiretest.Peer) {
		conns.Add(1)
		for {
			if _, err := p.R.Peek(1); err != nil {
				return
			}
			p.Header()
			p.Send(ok)
		}
	})
	p := newProxy(t, via, proxy.Options{Upstream: groupAt(t, upstream.Options{}, target), Rewrite: func(o *proxy.Outbound) { o.Out.Close = true }})
	client := wiretest.Dial(t, wiretest.Serve(t, p))
	for range 3 {
		client.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		client.Status(200)
	}
	if n := conns.Load(); n != 3 {
		t.Errorf("%d connections for three requests", n)
	}
}
