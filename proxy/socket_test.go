package proxy_test

import (
	"encoding/hex"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
	"github.com/culvert-go/culvert/wsupgrade"
)

// unixTarget serves a unix socket, echoes upgrades, and counts its connections.
func unixTarget(t *testing.T) (path string, connections *atomic.Int32) {
	t.Helper()
	dir, err := os.MkdirTemp("", "c")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path = filepath.Join(dir, "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	connections = new(atomic.Int32)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "" {
			_, _ = io.WriteString(w, "socket")
			return
		}
		conn, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		_, _ = io.Copy(conn, buffered)
	}))
	s.Listener.Close()
	s.Listener = l
	s.Config.ErrorLog = wiretest.Quiet()
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	wiretest.Start(s)
	t.Cleanup(s.Close)
	return path, connections
}

func socketName(path string) string { return "unix-" + hex.EncodeToString([]byte(path)) + ".invalid" }

func echoUpgrades(t *testing.T, dial *upstream.Group) *wsupgrade.Forwarder {
	t.Helper()
	f, err := wsupgrade.New(wsupgrade.Options{Protocols: []string{"echo"}, Dial: dial.Dial})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// A unix socket is reached by requests and upgrades, after another target has failed too.
func TestUnixTarget(t *testing.T) { onPaths(t, testUnixTarget) }
func testUnixTarget(t *testing.T, via path) {
	leaktest.Check(t)
	path, _ := unixTarget(t)
	group := groupOf(t, upstream.Options{Balance: upstream.First()}, upstream.Target{Addr: "127.0.0.1:1"}, upstream.Target{Addr: "unix:" + path})
	addr := wiretest.Serve(t, newProxy(t, via, proxy.Options{Upstream: group, Upgrades: echoUpgrades(t, group)}))
	for range 2 {
		p := wiretest.Dial(t, addr)
		p.Send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
		if got := p.Rest(); !strings.HasPrefix(got, "HTTP/1.1 200") || !strings.HasSuffix(got, "socket") {
			t.Errorf("got %q", got)
		}
	}
	p := wiretest.Dial(t, addr)
	p.Send("GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	if head := p.Header(); !strings.HasPrefix(head, "HTTP/1.1 101") {
		t.Fatalf("got %q", head)
	}
	p.Send("hello")
	p.Receive("hello")
}

// No name that a client or a hook chooses leads to a socket, beside a group that leases it either.
func TestNoNameReachesAUnixSocket(t *testing.T) { onPaths(t, testNoNameReachesAUnixSocket) }
func testNoNameReachesAUnixSocket(t *testing.T, via path) {
	leaktest.Check(t)
	path, connections := unixTarget(t)
	name := socketName(path)
	plain := wiretest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "plain") }))
	group := groupAt(t, upstream.Options{}, plain)
	upgrades := echoUpgrades(t, group)
	connect, err := upgrades.Connect(func(r *http.Request) (string, error) { return r.Host, nil })
	if err != nil {
		t.Fatal(err)
	}
	addr := wiretest.Serve(t, newProxy(t, via, proxy.Options{Upstream: group, Upgrades: upgrades, Rewrite: func(o *proxy.Outbound) {
		o.Out.URL.Host, o.Out.Host = name, name
	}}))
	connectAddr := wiretest.Serve(t, connect)
	for _, test := range []struct{ to, request, want string }{
		{addr, "GET / HTTP/1.1\r\nHost: " + name + "\r\nConnection: close\r\n\r\n", "HTTP/1.1 200"},
		{addr, "GET http://" + name + "/ HTTP/1.1\r\nHost: " + name + "\r\nConnection: close\r\n\r\n", "HTTP/1.1 200"},
		{addr, "GET / HTTP/1.1\r\nHost: " + name + "\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n", "HTTP/1.1 200"},
		{connectAddr, "CONNECT " + name + ":80 HTTP/1.1\r\nHost: " + name + ":80\r\nConnection: close\r\n\r\n", "HTTP/1.1 502"},
		{connectAddr, "CONNECT " + name + ":2375 HTTP/1.1\r\nHost: " + name + ":2375\r\nConnection: close\r\n\r\n", "HTTP/1.1 502"},
	} {
		p := wiretest.Dial(t, test.to)
		p.Send(test.request)
		if head := p.Header(); !strings.HasPrefix(head, test.want) {
			t.Errorf("%q:\ngot %q, want %s", test.request, head, test.want)
		}
	}
	p := wiretest.Dial(t, wiretest.Serve(t, upgrades.Handler(&url.URL{Scheme: "http", Host: name})))
	p.Send("GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	if head := p.Header(); !strings.HasPrefix(head, "HTTP/1.1 502") {
		t.Errorf("got %q", head)
	}
	if n := connections.Load(); n != 0 {
		t.Errorf("the socket got %d connections", n)
	}
}
