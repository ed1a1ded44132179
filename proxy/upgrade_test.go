package proxy_test

import (
	"context"
	"crypto/sha1"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
	"github.com/culvert-go/culvert/wsupgrade"
)

const (
	upgrade = "GET /ws%2F?a=%zz HTTP/1.1\r\nHost: culvert.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
	switching = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
		"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"
)

// The very first request is an upgrade, and its first bytes come with it: no
// warm-up, no lost resize frame.
func TestUpgradeOnTheFirstRequest(t *testing.T) { onPaths(t, testUpgradeOnTheFirstRequest) }
func testUpgradeOnTheFirstRequest(t *testing.T, via path) {
	leaktest.Check(t)
	client := wiretest.Dial(t, gateway(t, via, wiretest.Target(t, func(p *wiretest.Peer) {
		want := "GET /ws%2F?a=%zz HTTP/1.1\nconnection: Upgrade\nhost: culvert.test\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\n" +
			"sec-websocket-version: 13\nupgrade: websocket\nx-forwarded-for: 127.0.0.1\nx-forwarded-host: culvert.test\nx-forwarded-proto: http"
		if got := wiretest.Lines(p.Header()); got != want {
			t.Errorf("the target got\n%s\nwant\n%s", got, want)
		}
		p.Send(switching + "hello")
		p.Receive("resize")
		p.Send("done")
	})))
	client.Send(upgrade + "resize")
	client.Header()
	client.Receive("hellodone")
	client.End()
	client.Rest()
}

// An upgrade is retried on the next target only if the first could not be dialled.
func TestUpgradeNextTarget(t *testing.T) { onPaths(t, testUpgradeNextTarget) }
func testUpgradeNextTarget(t *testing.T, via path) {
	leaktest.Check(t)
	target := wiretest.Target(t, func(p *wiretest.Peer) {
		p.Header()
		p.Send(switching)
		p.Rest()
	})
	client := wiretest.Dial(t, gateway(t, via, wiretest.Unused(t), target))
	client.Send(upgrade)
	client.Receive("HTTP/1.1 101 ")
	client.Header()
	client.End()
	client.Rest()
}

func TestUpgradeFailures(t *testing.T) { onPaths(t, testUpgradeFailures) }
func testUpgradeFailures(t *testing.T, via path) {
	leaktest.Check(t)
	for name, test := range map[string]struct {
		target func(*testing.T) string
		kind   culvert.ErrorKind
		status int
	}{
		"refused":       {func(t *testing.T) string { return wiretest.Unused(t) }, culvert.DialFailed, 502},
		"closed":        {replying(""), culvert.HeaderInvalid, 502},
		"another key":   {replying("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: x\r\n\r\n"), culvert.HandshakeFailed, 502},
		"another proto": {replying("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"), culvert.HandshakeFailed, 502},
	} {
		t.Run(name, func(t *testing.T) {
			var failed failures
			target := test.target(t)
			p := newProxy(t, via, proxy.Options{Upstream: groupAt(t, upstream.Options{}, target), OnError: failed.add})
			client := wiretest.Dial(t, wiretest.Serve(t, p))
			client.Send(upgrade)
			client.Status(test.status)
			if e := failed.only(t); e.Kind != test.kind || e.Target != target || e.HeaderSent {
				t.Errorf("failure %#v", e)
			}
		})
	}
}

// An upgrade that is not allowed is a plain request, and its fields are gone.
func TestUpgradeNotAllowed(t *testing.T) { onPaths(t, testUpgradeNotAllowed) }
func testUpgradeNotAllowed(t *testing.T, via path) {
	leaktest.Check(t)
	upgrades, err := wsupgrade.New(wsupgrade.Options{Protocols: []string{"spdy/3.1"}})
	if err != nil {
		t.Fatal(err)
	}
	target, heads := recording(t, ok)
	p := newProxy(t, via, proxy.Options{Upstream: groupAt(t, upstream.Options{}, target), Upgrades: upgrades})
	client := wiretest.Dial(t, wiretest.Serve(t, p))
	client.Send(upgrade)
	client.Status(200)
	want := "GET /ws%2F?a=%zz HTTP/1.1\nhost: culvert.test\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\n" +
		"sec-websocket-version: 13\nx-forwarded-for: 127.0.0.1\nx-forwarded-host: culvert.test\nx-forwarded-proto: http"
	if got := wiretest.Lines(wiretest.Await(t, heads, "request")); got != want {
		t.Errorf("the target got\n%s\nwant\n%s", got, want)
	}
}

// A tunnel whose handler has returned holds its target, and a drain waits for it.
func TestDetachedTunnels(t *testing.T) { onPaths(t, testDetachedTunnels) }
func testDetachedTunnels(t *testing.T, via path) {
	leaktest.Check(t)
	target := wiretest.Target(t, func(p *wiretest.Peer) {
		p.Header()
		p.Send("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n")
		p.Receive("ping")
		p.Send("pong")
		p.Rest()
	})
	group := groupAt(t, upstream.Options{}, target)
	p := newProxy(t, via, proxy.Options{Upstream: group, DetachTunnels: true})
	returned := make(chan struct{}, 1)
	client := wiretest.Dial(t, wiretest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.ServeHTTP(w, r)
		returned <- struct{}{}
	})))
	client.Send(handshake)
	client.Header()
	wiretest.Await(t, returned, "handler's end")
	client.Send("ping")
	client.Receive("pong")
	if n := group.InFlight(); n != 1 {
		t.Errorf("%d in flight", n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Drain(ctx); err != context.Canceled {
		t.Errorf("drained with a tunnel open: %v", err)
	}
	client.End()
	client.Rest()
	if err := p.Drain(t.Context()); err != nil {
		t.Error(err)
	}
	if err := group.Drain(t.Context()); err != nil {
		t.Error(err)
	}
}

// An upgrade that gets another response than 101 releases its target at once.
func TestDetachedRefusal(t *testing.T) { onPaths(t, testDetachedRefusal) }
func testDetachedRefusal(t *testing.T, via path) {
	leaktest.Check(t)
	group := groupAt(t, upstream.Options{}, wiretest.Replying(t, "HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n"))
	p := newProxy(t, via, proxy.Options{Upstream: group, DetachTunnels: true})
	client := wiretest.Dial(t, wiretest.Serve(t, p))
	client.Send(handshake)
	client.Status(403)
	if err := p.Drain(t.Context()); err != nil {
		t.Error(err)
	}
	if err := group.Drain(t.Context()); err != nil {
		t.Error(err)
	}
}

// CONNECT without a protocol is nothing that a reverse proxy forwards.
func TestConnectIsRefused(t *testing.T) { onPaths(t, testConnectIsRefused) }
func testConnectIsRefused(t *testing.T, via path) {
	leaktest.Check(t)
	var failed failures
	p := newProxy(t, via, proxy.Options{Upstream: groupAt(t, upstream.Options{}, wiretest.Unused(t)), OnError: failed.add})
	client := wiretest.Dial(t, wiretest.Serve(t, p))
	client.Send("CONNECT db.internal:5432 HTTP/1.1\r\nHost: db.internal:5432\r\n\r\n")
	client.Status(501)
	if e := failed.only(t); e.Kind != culvert.Unsupported {
		t.Errorf("failure %v", e)
	}
}

// "docker exec" is a POST with a body: through the proxy that reaches the target that can be
// dialled, in whole, and a waiting handler or none makes no difference.
func TestUpgradeWithABody(t *testing.T) { onPaths(t, testUpgradeWithABody) }
func testUpgradeWithABody(t *testing.T, via path) {
	leaktest.Check(t)
	const body = `{"Detach":false,"Tty":true}`
	for _, detach := range []bool{false, true} {
		upgrades, err := wsupgrade.New(wsupgrade.Options{Protocols: []string{"tcp"}})
		if err != nil {
			t.Fatal(err)
		}
		target := wiretest.Target(t, func(p *wiretest.Peer) {
			p.Header()
			p.Receive(body)
			p.Send("HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n")
			p.Receive("input")
			p.Send("output")
		})
		group := groupAt(t, upstream.Options{}, wiretest.Unused(t), target)
		p := newProxy(t, via, proxy.Options{Upstream: group, Upgrades: upgrades, DetachTunnels: detach})
		addr := wiretest.Serve(t, p)
		for range 2 { // one of them meets the dead target first
			client := wiretest.Dial(t, addr)
			client.Send("POST /exec/1/start HTTP/1.1\r\nHost: docker\r\nConnection: Upgrade\r\nUpgrade: tcp\r\nContent-Type: application/json\r\n" +
				fmt.Sprintf("Content-Length: %d\r\n\r\n%sinput", len(body), body))
			if head := client.Header(); !strings.HasPrefix(head, "HTTP/1.1 101 ") {
				t.Errorf("the client got %q", head)
			}
			client.Receive("output")
			client.End()
			client.Rest()
		}
	}
}

// A body that the first target has taken and not responded to is sent to the next one as a whole.
func TestUpgradeBodyIsSentAgain(t *testing.T) { onPaths(t, testUpgradeBodyIsSentAgain) }
func testUpgradeBodyIsSentAgain(t *testing.T, via path) {
	leaktest.Check(t)
	registry, err := wsupgrade.NewRegistry(wsupgrade.RegistryOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []*wsupgrade.Registry{nil, registry} {
		sendUpgradeBodyAgain(t, via, r)
	}
}

func sendUpgradeBodyAgain(t *testing.T, via path, registry *wsupgrade.Registry) {
	t.Helper()
	const body = `{"Detach":false,"Tty":true}`
	for _, framed := range []string{
		fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body),
		fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(body), body),
	} {
		upgrades, err := wsupgrade.New(wsupgrade.Options{Protocols: []string{"tcp"}, Registry: registry})
		if err != nil {
			t.Fatal(err)
		}
		broken := make(chan bool, 2)
		breaks := func(p *wiretest.Peer) {
			p.Header()
			p.Receive(body)
			broken <- true
		}
		target := wiretest.Target(t, func(p *wiretest.Peer) {
			p.Header()
			p.Receive(body)
			p.Send("HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n")
			p.Receive("input")
			p.Send("output")
		})
		group := groupAt(t, upstream.Options{}, wiretest.Target(t, breaks), wiretest.Target(t, breaks), target)
		retry := proxy.Retry{Errors: true, NonIdempotent: true}
		addr := wiretest.Serve(t, newProxy(t, via, proxy.Options{Upstream: group, Upgrades: upgrades, Retry: retry}))
		client := wiretest.Dial(t, addr)
		client.Send("POST /exec/1/start HTTP/1.1\r\nHost: docker\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n" + framed + "input")
		if head := client.Header(); !strings.HasPrefix(head, "HTTP/1.1 101 ") {
			t.Errorf("the client got %q", head)
		}
		client.Receive("output")
		wiretest.Await(t, broken, "first attempt")
		wiretest.Await(t, broken, "second attempt")
		client.End()
		client.Rest()
	}
}

// A WebSocket over HTTP/2 (RFC 8441) has a pseudo-header among its fields, as net/http hands it on.
func TestExtendedConnectIsForwarded(t *testing.T) { onPaths(t, testExtendedConnectIsForwarded) }
func testExtendedConnectIsForwarded(t *testing.T, via path) {
	leaktest.Check(t)
	target := wiretest.Target(t, func(p *wiretest.Peer) {
		head := wiretest.Lines(p.Header())
		if strings.Contains(head, "protocol:") {
			t.Errorf("the target got\n%s", head)
		}
		_, key, _ := strings.Cut(head, "\nsec-websocket-key: ")
		key, _, _ = strings.Cut(key, "\n")
		p.Send(strings.Replace(switching, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", acceptOf(key), 1))
	})
	r := httptest.NewRequest(http.MethodConnect, "https://culvert.test/ws", http.NoBody)
	r.ProtoMajor, r.ProtoMinor, r.Proto = 2, 0, "HTTP/2.0"
	r.RequestURI = "/ws"
	r.Header = http.Header{":protocol": {"websocket"}, "Sec-Websocket-Version": {"13"}}
	w := httptest.NewRecorder()
	newProxy(t, via, proxy.Options{Upstream: groupAt(t, upstream.Options{}, target)}).ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		t.Errorf("status %d: %s", w.Code, w.Body)
	}
}

// acceptOf returns the Sec-WebSocket-Accept for a key (RFC 6455 section 4.2.2).
func acceptOf(key string) string {
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	return base64.StdEncoding.EncodeToString(sum[:])
}
