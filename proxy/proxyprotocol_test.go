package proxy_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/proxyproto"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// headered accepts connections that begin with a header of the PROXY protocol.
type headered struct {
	net.Listener
	accepted atomic.Int32
}

func (l *headered) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.accepted.Add(1)
	return proxyproto.NewConn(c, 0), nil
}

// headerTarget is a target that responds with the addresses of its connection's header.
func headerTarget(t *testing.T, secure bool) (*headered, *httptest.Server) {
	t.Helper()
	type key struct{}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := r.Context().Value(key{}).(net.Conn)
		if s, ok := c.(*tls.Conn); ok {
			c = s.NetConn()
		}
		h, err := c.(*proxyproto.Conn).Header()
		fmt.Fprintln(w, h.Client, h.Server, h.Local, err)
	}))
	l := &headered{Listener: s.Listener}
	s.Listener = l
	s.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, key{}, c) }
	if secure {
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	return l, s
}

// Each connection to a target names the client of its requests, before TLS, and carries no other's.
func TestProxyProtocol(t *testing.T) { onPaths(t, testProxyProtocol) }
func testProxyProtocol(t *testing.T, via path) {
	for _, version := range []upstream.ProxyProtocol{upstream.ProxyProtocolV1, upstream.ProxyProtocolV2} {
		for _, scheme := range []string{"http", "https"} {
			t.Run(fmt.Sprint(scheme, version), func(t *testing.T) {
				leaktest.Check(t)
				l, target := headerTarget(t, scheme == "https")
				o := upstream.Options{Scheme: scheme, ProxyProtocol: version}
				if scheme == "https" {
					o.TLSConfig = target.Client().Transport.(*http.Transport).TLSClientConfig
				}
				front := wiretest.Serve(t, newProxy(t, via, proxy.Options{Upstream: groupAt(t, o, target.Listener.Addr().String())}))
				clients := []*wiretest.Peer{wiretest.Dial(t, front), wiretest.Dial(t, front)}
				for round := range 2 {
					for i, c := range clients {
						c.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
						_, got := c.Response("GET")
						if want := fmt.Sprintln(c.Conn.LocalAddr(), front, false, nil); got != want {
							t.Errorf("round %d, client %d: the target sees %q, want %q", round, i, got, want)
						}
					}
				}
				for _, c := range clients {
					c.Conn.Close()
				}
				want := int32(2)
				if via == httpTransport {
					want = 4
				}
				if n := l.accepted.Load(); n != want {
					t.Errorf("%d connections, want %d", n, want)
				}
			})
		}
	}
}

// At the same time, too, each request has a connection that names its client.
func TestProxyProtocolAtOnce(t *testing.T) { onPaths(t, testProxyProtocolAtOnce) }
func testProxyProtocolAtOnce(t *testing.T, via path) {
	leaktest.Check(t)
	_, target := headerTarget(t, false)
	group := groupAt(t, upstream.Options{ProxyProtocol: upstream.ProxyProtocolV2, MaxIdleConns: 2}, target.Listener.Addr().String())
	front := wiretest.Serve(t, newProxy(t, via, proxy.Options{Upstream: group}))
	var running sync.WaitGroup
	for range 8 {
		running.Go(func() {
			c, err := net.Dial("tcp", front)
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			p := wiretest.NewPeer(t, c)
			for range 20 {
				p.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
				if _, got := p.Response("GET"); !strings.HasPrefix(got, c.LocalAddr().String()) {
					t.Errorf("%v: the target sees %q", c.LocalAddr(), got)
				}
			}
		})
	}
	running.Wait()
}

// The bytes of version 1 come before the request of an upgrade, and the tunnel is what follows.
func TestProxyProtocolOfTunnels(t *testing.T) {
	for _, dynamic := range []bool{false, true} {
		leaktest.Check(t)
		seen := make(chan string, 1)
		target := wiretest.Target(t, func(p *wiretest.Peer) {
			line, _ := p.R.ReadString('\n')
			seen <- line
			p.Header()
			p.Send("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n")
			p.Receive("ping")
			p.Send("pong")
			_, _ = io.Copy(io.Discard, p.R)
		})
		o := proxy.Options{DetachTunnels: dynamic, Upstream: groupAt(t, upstream.Options{ProxyProtocol: upstream.ProxyProtocolV1}, target)}
		if dynamic {
			d, err := upstream.NewDynamic(upstream.DynamicOptions{Group: upstream.Options{ProxyProtocol: upstream.ProxyProtocolV1},
				Choose: func(*http.Request) (upstream.Target, error) { return upstream.Target{Addr: target}, nil }})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = d.Close() })
			o.Upstream = d
		}
		front := wiretest.Serve(t, newProxy(t, ownExchange, o))
		c := wiretest.Dial(t, front)
		c.Send("GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
		c.Header()
		c.Send("ping")
		c.Receive("pong")
		from, to := c.Conn.LocalAddr().(*net.TCPAddr), c.Conn.RemoteAddr().(*net.TCPAddr)
		want := fmt.Sprintf("PROXY TCP4 %v %v %d %d\r\n", from.IP, to.IP, from.Port, to.Port)
		if got := wiretest.Await(t, seen, "the header"); got != want {
			t.Errorf("the target got %q, want %q", got, want)
		}
		c.Conn.Close()
	}
}

// Behind a trusted proxy the header names its client, and connections are kept for that, by whichever connection it comes.
func TestProxyProtocolBehindProxies(t *testing.T) {
	leaktest.Check(t)
	l, target := headerTarget(t, false)
	realIP, err := filters.RealIP(filters.RealIPOptions{Trusted: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	if err != nil {
		t.Fatal(err)
	}
	p := newProxy(t, ownExchange, proxy.Options{Upstream: groupAt(t, upstream.Options{ProxyProtocol: upstream.ProxyProtocolV2}, target.Listener.Addr().String())})
	front := wiretest.Serve(t, realIP(p))
	for _, client := range []string{"203.0.113.1", "203.0.113.2", "203.0.113.1", "203.0.113.2"} {
		c := wiretest.Dial(t, front)
		c.Send("GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: " + client + "\r\n\r\n")
		if _, got := c.Response("GET"); !strings.HasPrefix(got, client+":0 "+front) {
			t.Errorf("%s: the target sees %q", client, got)
		}
		c.Conn.Close()
	}
	if n := l.accepted.Load(); n != 2 {
		t.Errorf("%d connections, want 2", n)
	}
}

// A request that the program makes itself is none of a client.
func TestProxyProtocolOfOwnRequests(t *testing.T) { onPaths(t, testProxyProtocolOfOwnRequests) }
func testProxyProtocolOfOwnRequests(t *testing.T, via path) {
	_, target := headerTarget(t, false)
	p := newProxy(t, via, proxy.Options{Upstream: groupAt(t, upstream.Options{ProxyProtocol: upstream.ProxyProtocolV2}, target.Listener.Addr().String())})
	for addr, want := range map[string]string{"": "true", "@": "false"} { // "@" is the client of a unix socket
		r, w := httptest.NewRequestWithContext(t.Context(), "GET", "/", nil), httptest.NewRecorder()
		r.RemoteAddr = addr
		p.ServeHTTP(w, r)
		if got := w.Body.String(); !strings.Contains(got, "invalid AddrPort") || !strings.Contains(got, want) {
			t.Errorf("client %q: the target sees %q, want %s", addr, got, want)
		}
	}
}

// A target that does not accept the header has not been dialled, after DialTimeout.
func TestProxyProtocolStalls(t *testing.T) { onPaths(t, testProxyProtocolStalls) }
func testProxyProtocolStalls(t *testing.T, via path) {
	synctest.Test(t, func(t *testing.T) {
		closed := make(chan struct{})
		o := upstream.Options{ProxyProtocol: upstream.ProxyProtocolV1, DialTimeout: 3 * time.Second, DialContext: func(context.Context, string, string) (net.Conn, error) {
			near, far := net.Pipe()
			t.Cleanup(func() { far.Close() })
			return closing{near, closed}, nil
		}}
		var failures failures
		po := proxy.Options{Upstream: groupAt(t, o, "192.0.2.1:80"), OnError: failures.add}
		start, w := time.Now(), httptest.NewRecorder()
		newProxy(t, via, po).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/", nil))
		if took := time.Since(start); took != 3*time.Second || w.Code != 504 {
			t.Errorf("%d after %v, want 504 after 3s", w.Code, took)
		}
		if e := failures.only(t); e.Kind != culvert.Timeout || e.BytesSent {
			t.Errorf("%v, bytes sent: %v", e, e.BytesSent)
		}
		<-closed
	})
}

type closing struct {
	net.Conn
	closed chan struct{}
}

func (c closing) Close() error {
	close(c.closed)
	return c.Conn.Close()
}
