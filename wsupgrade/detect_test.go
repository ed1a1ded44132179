package wsupgrade_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/wsupgrade"
)

// echoing starts a target that accepts any handshake with the RFC's key, switches to protocol, and
// reports the request's header.
func echoing(t *testing.T, protocol string) (addr string, headers <-chan string) {
	c := make(chan string, 1)
	return wiretest.Target(t, func(p *wiretest.Peer) {
		c <- p.Header()
		p.Send(strings.Replace(switching, "Upgrade: websocket", "Upgrade: "+protocol, 1))
		p.Ended()
	}), c
}

func TestUpgradesAreDetected(t *testing.T) {
	leaktest.Check(t)
	for _, test := range []struct {
		name      string
		protocols []string
		request   string
		upgrade   string // at the target
	}{
		{"as browsers write it", nil, strings.Replace(handshake, "Connection: Upgrade", "Connection: keep-alive, Upgrade", 1), "websocket"},
		{"Connection on two lines", nil, strings.Replace(handshake, "Connection: Upgrade", "Connection: keep-alive\r\nconnection: uPGRADE", 1), "websocket"},
		{"odd case", nil, strings.NewReplacer("Connection: Upgrade", "CONNECTION:upgrade", "Upgrade: websocket", "upgrade:  WebSocket").Replace(handshake), "WebSocket"},
		{"several offers", nil, strings.Replace(handshake, "Upgrade: websocket", "Upgrade: websocket, h2c", 1), "websocket"},
		{"ours is second", nil, strings.Replace(handshake, "Upgrade: websocket", "Upgrade: h2c, x-y/1\r\nUpgrade: websocket", 1), "websocket"},
		{"any, where all are allowed", []string{wsupgrade.AnyProtocol}, "POST /exec HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: h2c, tcp\r\n\r\n", "tcp"},
		{"WebSocket first, where all are allowed", []string{wsupgrade.AnyProtocol}, strings.Replace(handshake, "Upgrade: websocket", "Upgrade: tcp, websocket", 1), "websocket"},
		{"by the allow-list", []string{"websocket", "SPDY/3.1"}, "POST /exec HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: spdy/3.1\r\n\r\n", "spdy/3.1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			target, headers := echoing(t, test.upgrade)
			p := wiretest.Dial(t, gateway(t, wsupgrade.Options{Protocols: test.protocols}, target))
			p.Send(test.request)
			want := []string{"connection: Upgrade", "upgrade: " + test.upgrade}
			got := wiretest.Lines(wiretest.Await(t, headers, "header"))
			for _, line := range want {
				if !strings.Contains(got+"\n", "\n"+line+"\n") {
					t.Errorf("the target got\n%s\nwithout %q", got, line)
				}
			}
			if n := strings.Count(got, "upgrade: ") + strings.Count(got, "connection: "); n != 2 {
				t.Errorf("%d Connection and Upgrade fields in\n%s", n, got)
			}
			if client := p.Header(); !strings.HasPrefix(client, "HTTP/1.1 101 ") || !strings.Contains(client, "Upgrade: "+test.upgrade+"\r\n") {
				t.Errorf("the client got %q", client)
			}
		})
	}
}

// A request for no protocol that is allowed is not an upgrade; the Handler refuses it, and names
// what it accepts.
func TestPlainRequestsAreRefused(t *testing.T) {
	leaktest.Check(t)
	target := wiretest.Target(t, func(p *wiretest.Peer) { t.Errorf("the target got %q", p.Header()) })
	for _, test := range []struct {
		name      string
		protocols []string
		request   string
		upgrade   string
	}{
		{"no upgrade", nil, secretless, "websocket"},
		{"Upgrade without the Connection token", nil, strings.Replace(handshake, "Connection: Upgrade", "Connection: keep-alive", 1), "websocket"},
		{"Upgrade without Connection", nil, without(handshake, "Connection"), "websocket"},
		{"Connection without Upgrade", nil, without(handshake, "Upgrade"), "websocket"},
		{"HTTP/1.0", nil, strings.Replace(strings.Replace(handshake, "HTTP/1.1", "HTTP/1.0", 1), "Upgrade\r\n", "Upgrade, keep-alive\r\n", 1), "websocket"},
		{"h2c, where all are allowed", []string{wsupgrade.AnyProtocol}, strings.Replace(handshake, "Upgrade: websocket", "Upgrade: h2c, TLS/1.2", 1), "websocket"},
		{"h2c", nil, strings.Replace(handshake, "Upgrade: websocket", "Upgrade: h2c", 1), "websocket"},
		{"h2c with settings", nil, with(strings.NewReplacer("Upgrade: websocket", "Upgrade: h2c", "Connection: Upgrade", "Connection: Upgrade, HTTP2-Settings").Replace(handshake), "HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA"), "websocket"},
		{"not allowed", nil, strings.Replace(handshake, "Upgrade: websocket", "Upgrade: spdy/3.1", 1), "websocket"},
		{"no longer allowed", []string{"spdy/3.1"}, handshake, "spdy/3.1"},
		{"a long token", nil, strings.Replace(handshake, "Upgrade: websocket", "Upgrade: "+strings.Repeat("w", 65), 1), "websocket"},
		{"a quoted token", nil, strings.Replace(handshake, "Upgrade: websocket", "Upgrade: \"websocket\"", 1), "websocket"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := wiretest.Dial(t, gateway(t, wsupgrade.Options{Protocols: test.protocols}, target))
			p.Send(test.request)
			resp, _ := p.Response("GET")
			if resp.StatusCode != 426 || resp.Header.Get("Upgrade") != test.upgrade || resp.Header.Get("Connection") != "Upgrade" {
				t.Errorf("response %s %v", resp.Status, resp.Header)
			}
		})
	}
}

const secretless = "GET /chat HTTP/1.1\r\nHost: culvert.test\r\n\r\n"

// net/http never passes on a control byte in a field.
func TestControlByteInUpgrade(t *testing.T) {
	p := wiretest.Dial(t, gateway(t, wsupgrade.Options{}, "127.0.0.1:1"))
	p.Send(strings.Replace(handshake, "Upgrade: websocket", "Upgrade: web\x01socket", 1))
	p.Status(400)
}

func TestHandshakesAreRefused(t *testing.T) {
	leaktest.Check(t)
	target := wiretest.Target(t, func(p *wiretest.Peer) { t.Errorf("the target got %q", p.Header()) })
	addr, outcomes := watched(t, wsupgrade.Options{}, target)
	replace := func(old, new string) string { return strings.Replace(handshake, old, new, 1) }
	for _, test := range []struct {
		name, request string
		status        int
	}{
		{"with a body", with(handshake, "Content-Length: 5") + "hello", 400},
		{"with a chunked body", with(handshake, "Transfer-Encoding: chunked") + "5\r\nhello\r\n0\r\n\r\n", 400},
		{"with an empty chunked body", with(handshake, "Transfer-Encoding: chunked") + "0\r\n\r\n", 400},
		{"POST", replace("GET", "POST"), 400},
		{"HEAD", replace("GET", "HEAD"), 400},
		{"no key", without(handshake, "Sec-WebSocket-Key"), 400},
		{"two keys", with(handshake, "Sec-WebSocket-Key: "+key), 400},
		{"empty key", replace(key, ""), 400},
		{"key of 15 bytes", replace(key, "AAAAAAAAAAAAAAAAAAAA"), 400},
		{"key of 17 bytes", replace(key, "AAAAAAAAAAAAAAAAAAAAAAA="), 400},
		{"key without padding", replace(key, strings.TrimRight(key, "=")), 400},
		{"key that is no base64", replace(key, "!!hlIHNhbXBsZSBub25jZQ=="), 400},
		{"key list", replace(key, key+", "+key), 400},
		{"no version", without(handshake, "Sec-WebSocket-Version"), 400},
		{"two versions", with(handshake, "Sec-WebSocket-Version: 13"), 400},
		{"version list", replace("Version: 13", "Version: 13, 8"), 400},
		{"version that is no number", replace("Version: 13", "Version: x"), 400},
		{"empty version", replace("Version: 13", "Version:"), 400},
		{"version 8", replace("Version: 13", "Version: 8"), 426},
		{"version 777", replace("Version: 13", "Version: 777"), 426},
		{"foreign origin", with(handshake, "Origin: http://evil.test"), 403},
		{"null origin", with(handshake, "Origin: null"), 403},
		{"empty origin", with(handshake, "Origin:"), 403},
		{"two origins", with(handshake, "Origin: http://culvert.test", "Origin: http://culvert.test"), 403},
		{"two origins in one", with(handshake, "Origin: http://culvert.test http://evil.test"), 403},
		{"our name in front of theirs", with(handshake, "Origin: http://culvert.test.evil"), 403},
		{"our name as user", with(handshake, "Origin: http://culvert.test@evil.test"), 403},
		{"our name at the end of theirs", with(handshake, "Origin: http://evil-culvert.test"), 403},
		{"another port", with(handshake, "Origin: http://culvert.test:8080"), 403},
		{"another scheme's port", with(replace("Host: culvert.test", "Host: culvert.test:80"), "Origin: https://culvert.test"), 403},
		{"no web origin", with(handshake, "Origin: app://culvert.test"), 403},
		{"origin without a host", with(handshake, "Origin: http://"), 403},
		{"named away", with(replace("Connection: Upgrade", "Connection: Upgrade, Origin"), "Origin: http://evil.test"), 403},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := wiretest.Dial(t, addr)
			p.Send(test.request)
			method, _, _ := strings.Cut(test.request, " ")
			resp, _ := p.Response(method)
			if resp.StatusCode != test.status {
				t.Errorf("response %s, want %d", resp.Status, test.status)
			}
			if test.status == 426 && resp.Header.Get("Sec-Websocket-Version") != "13" {
				t.Errorf("header %v", resp.Header)
			}
			if o := wiretest.Await(t, outcomes, "outcome"); o.err == nil || !o.err.ClientSide() || o.err.BytesSent || o.err.HeaderSent || o.err.Target != "" || o.status != 0 {
				t.Errorf("outcome %+v", o)
			}
		})
	}
}

func TestOriginsThatMayConnect(t *testing.T) {
	leaktest.Check(t)
	everyone := func(*http.Request) bool { return true }
	for _, test := range []struct {
		name, host, origin string
		check              func(*http.Request) bool
	}{
		{"none", "culvert.test", "", nil},
		{"same", "culvert.test", "http://culvert.test", nil},
		{"same in other case", "culvert.test", "HTTP://Culvert.Test", nil},
		{"TLS ended before", "culvert.test", "https://culvert.test", nil},
		{"default port", "culvert.test", "http://culvert.test:80", nil},
		{"default port the other way", "culvert.test:443", "https://culvert.test", nil},
		{"port", "culvert.test:8080", "http://culvert.test:8080", nil},
		{"IPv6", "[::1]", "http://[::1]:80", nil},
		{"a check of one's own", "culvert.test", "http://elsewhere.test", everyone},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := wiretest.Dial(t, gateway(t, wsupgrade.Options{CheckOrigin: test.check}, wiretest.Replying(t, switching)))
			request := strings.Replace(handshake, "Host: culvert.test", "Host: "+test.host, 1)
			if test.origin != "" {
				request = with(request, "Origin: "+test.origin)
			}
			p.Send(request)
			p.Status(101)
		})
	}
}
