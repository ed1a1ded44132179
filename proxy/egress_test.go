package proxy_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// connectProxy serves CONNECT for one user.
type connectProxy struct {
	tunnels atomic.Int32
}

func (p *connectProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodConnect || r.Header.Get("Proxy-Authorization") != "Basic dTpw" {
		w.WriteHeader(http.StatusProxyAuthRequired)
		return
	}
	to, err := net.Dial("tcp", r.URL.Host)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer to.Close()
	p.tunnels.Add(1)
	from, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer from.Close()
	_, _ = io.WriteString(from, "HTTP/1.1 200 OK\r\n\r\n")
	ended := make(chan struct{}, 2)
	for _, c := range [][2]net.Conn{{from, to}, {to, from}} {
		go func() {
			_, _ = io.Copy(c[0], c[1])
			from.Close()
			to.Close()
			ended <- struct{}{}
		}()
	}
	<-ended
	<-ended
}

// Requests and upgrades reach their targets through a proxy, and the connections are kept.
func TestEgressProxy(t *testing.T) { onPaths(t, testEgressProxy) }
func testEgressProxy(t *testing.T, via path) {
	for _, scheme := range []string{"http", "https"} {
		for _, toProxy := range []string{"http", "https"} {
			t.Run(scheme+" through "+toProxy, func(t *testing.T) {
				leaktest.Check(t)
				between := &connectProxy{}
				egress, o := httptest.NewUnstartedServer(between), upstream.EgressOptions{}
				if toProxy == "https" {
					egress.StartTLS()
					o.TLSConfig = egress.Client().Transport.(*http.Transport).TLSClientConfig
				} else {
					egress.Start()
				}
				defer egress.Close()
				target := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.Header.Get("Upgrade") == "" {
						fmt.Fprint(w, r.URL.Path, r.TLS != nil)
						return
					}
					w.Header().Set("Connection", "Upgrade")
					w.Header().Set("Upgrade", "websocket")
					w.Header().Set("Sec-WebSocket-Accept", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
					w.WriteHeader(http.StatusSwitchingProtocols)
					c, _, err := http.NewResponseController(w).Hijack()
					if err != nil {
						return
					}
					fmt.Fprint(c, "tunnel ", r.TLS != nil)
					c.Close()
				}))
				u := upstream.Options{Scheme: scheme}
				if scheme == "https" {
					target.StartTLS()
					u.TLSConfig = &tls.Config{RootCAs: target.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}
				} else {
					target.Start()
				}
				defer target.Close()
				var err error
				if u.DialContext, err = upstream.DialThrough(toProxy+"://u:p@"+egress.Listener.Addr().String(), o); err != nil {
					t.Fatal(err)
				}
				p := newProxy(t, via, proxy.Options{Upstream: groupAt(t, u, target.Listener.Addr().String())})
				for range 2 {
					w := httptest.NewRecorder()
					p.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/x", nil))
					if want := fmt.Sprint("/x", scheme == "https"); w.Code != 200 || w.Body.String() != want {
						t.Errorf("%d %q, want %q", w.Code, w.Body, want)
					}
				}
				if n := between.tunnels.Load(); n != 1 {
					t.Errorf("%d connections for two requests", n)
				}
				c := wiretest.Dial(t, wiretest.Serve(t, p))
				c.Send("GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
				c.Header()
				if got, want := c.Rest(), fmt.Sprint("tunnel ", scheme == "https"); got != want {
					t.Errorf("through the tunnel came %q, want %q", got, want)
				}
			})
		}
	}
}

// A proxy that refuses the gateway takes no target out, and one that does not reach a target does.
func TestEgressProxyAndHealth(t *testing.T) { onPaths(t, testEgressProxyAndHealth) }
func testEgressProxyAndHealth(t *testing.T, via path) {
	leaktest.Check(t)
	egress := httptest.NewServer(&connectProxy{})
	defer egress.Close()
	for user, test := range map[string]struct {
		kind    culvert.ErrorKind
		healthy bool
	}{"wrong": {culvert.Internal, true}, "u:p": {culvert.DialFailed, false}} {
		dial, err := upstream.DialThrough("http://"+user+"@"+egress.Listener.Addr().String(), upstream.EgressOptions{})
		if err != nil {
			t.Fatal(err)
		}
		group := groupAt(t, upstream.Options{DialContext: dial, MaxEjected: 1}, wiretest.Unused(t), "192.0.2.1:80")
		var failures failures
		p := newProxy(t, via, proxy.Options{Upstream: group, OnError: failures.add, Retry: proxy.Retry{}})
		w := httptest.NewRecorder()
		p.ServeHTTP(w, httptest.NewRequestWithContext(context.Background(), "GET", "/", nil))
		if e := failures.only(t); e.Kind != test.kind || e.BytesSent {
			t.Errorf("%s: %v of kind %v, bytes sent: %v", user, e, e.Kind, e.BytesSent)
		}
		for s := range group.Targets() {
			if s.Healthy != test.healthy {
				t.Errorf("%s: the target is healthy: %v", user, s.Healthy)
			}
			break // the first one was called
		}
	}
}
