package proxy_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
	"github.com/culvert-go/culvert/wsupgrade"
)

const handshakeTo = "GET /ws HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"

// reaching returns whether a request and an upgrade have made a connection to the target of o.
func reaching(t *testing.T, o proxy.Options, reached *atomic.Bool) (request, upgrade bool) {
	t.Helper()
	p, err := proxy.New(o)
	if err != nil {
		t.Fatal(err)
	}
	addr := wiretest.Serve(t, p)
	for i, header := range []string{"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n", handshakeTo} {
		reached.Store(false)
		c := wiretest.Dial(t, addr)
		c.Send(header)
		c.Header()
		c.Close()
		if i == 0 {
			request = reached.Load()
		} else {
			upgrade = reached.Load()
		}
	}
	return request, upgrade
}

// guardedTransport wraps a transport, and says so.
type guardedTransport struct{ *upstream.Transport }

// A transport or a Forwarder of the program's own must not lead around the AllowAddr of a group: where it can't be bound by that, the
// configuration is refused.
func TestAllowAddrBindsOwnTransports(t *testing.T) {
	leaktest.Check(t)
	var reached atomic.Bool
	target := httptest.NewUnstartedServer(http.NotFoundHandler())
	target.Config.ConnState = func(_ net.Conn, s http.ConnState) { reached.Store(reached.Load() || s == http.StateNew) }
	target.Start()
	defer target.Close()
	addr := target.Listener.Addr().String()
	none := func(netip.Addr) bool { return false }
	group := groupOf(t, upstream.Options{AllowAddr: none}, upstream.Target{Addr: addr})
	dynamic, err := upstream.NewDynamic(upstream.DynamicOptions{Group: upstream.Options{AllowAddr: none},
		Choose: func(*http.Request) (upstream.Target, error) { return upstream.Target{Addr: addr}, nil }})
	if err != nil {
		t.Fatal(err)
	}
	defer dynamic.Close()
	unbound, err := upstream.NewTransport(upstream.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer unbound.CloseIdleConnections()
	bound, err := upstream.NewTransport(upstream.Options{AllowAddr: none})
	if err != nil {
		t.Fatal(err)
	}
	forwarder, err := wsupgrade.New(wsupgrade.Options{}) // without Dial
	if err != nil {
		t.Fatal(err)
	}
	for name, picker := range map[string]upstream.Picker{"group": group, "dynamic": dynamic} {
		for _, transport := range []http.RoundTripper{&http.Transport{}, unbound, struct{ http.RoundTripper }{bound}} {
			if _, err := proxy.New(proxy.Options{Upstream: picker, Transport: transport}); err == nil || !strings.Contains(err.Error(), "AllowAddr") {
				t.Errorf("%s with a %T: %v", name, transport, err)
			}
		}
		for _, o := range []proxy.Options{
			{Upstream: picker, Upgrades: forwarder},
			{Upstream: picker, Upgrades: forwarder, Transport: bound},
			{Upstream: picker, Upgrades: forwarder, Transport: guardedTransport{bound}},
		} {
			if request, upgrade := reaching(t, o, &reached); request || upgrade {
				t.Errorf("%s, %T: a request reaches the target: %v, an upgrade: %v", name, o.Transport, request, upgrade)
			}
		}
	}
	own := pickerFunc(group.Pick)
	if request, _ := reaching(t, proxy.Options{Upstream: own, Transport: unbound}, &reached); request {
		t.Error("a request of a Picker of the program's own reaches the target")
	}
	if request, upgrade := reaching(t, proxy.Options{Upstream: groupOf(t, upstream.Options{}, upstream.Target{Addr: addr}), Upgrades: forwarder, Transport: unbound}, &reached); !request || !upgrade {
		t.Errorf("without AllowAddr a request reaches the target: %v, an upgrade: %v", request, upgrade)
	}
}

// A Forwarder without a Dial reaches targets as their group does: through what DialContext goes through, by TLS that their own
// configurations describe, and with a header of the PROXY protocol.
func TestForwarderWithoutDial(t *testing.T) {
	leaktest.Check(t)
	got := make(chan string, 1)
	dial := pipeTo(func(c net.Conn) {
		b := make([]byte, 5)
		_, _ = io.ReadFull(c, b)
		got <- string(b)
		c.Close()
	})
	forwarder, err := wsupgrade.New(wsupgrade.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for want, o := range map[string]upstream.Options{
		"GET /":        {DialContext: dial},
		"PROXY":        {DialContext: dial, ProxyProtocol: upstream.ProxyProtocolV1},
		"\x16\x03\x01": {DialContext: dial, Scheme: "https"},
	} {
		group := groupOf(t, o, upstream.Target{Addr: "target.test:1"})
		for _, picker := range []upstream.Picker{group, pickerFunc(group.Pick)} {
			p, err := proxy.New(proxy.Options{Upstream: picker, Upgrades: forwarder})
			if err != nil {
				t.Fatal(err)
			}
			c := wiretest.Dial(t, wiretest.Serve(t, p))
			c.Send(handshakeTo)
			if first := wiretest.Await(t, got, "the target's first bytes"); !strings.HasPrefix(first, want) {
				t.Errorf("the target got %q, want %q", first, want)
			}
			c.Header()
			c.Close()
		}
	}
}
