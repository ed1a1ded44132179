package wsupgrade_test

import (
	"strings"
	"testing"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/wsupgrade"
)

// For each of these 101s the client gets a 502. Its early bytes reach no target that has not
// switched properly, and no connection is left open.
func TestInvalid101(t *testing.T) {
	leaktest.Check(t)
	offering := with(handshake, "Sec-WebSocket-Protocol: v4.channel.k8s.io, chat", "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits")
	wrong := "HSmrc0sMlYUkAGmm5OPpG2HaGWk=" // of another key
	for _, test := range []struct{ name, request, reply string }{
		{"no Upgrade", handshake, without(switching, "Upgrade")},
		{"no Connection", handshake, without(switching, "Connection")},
		{"Connection without upgrade", handshake, strings.Replace(switching, "Connection: Upgrade", "Connection: keep-alive", 1)},
		{"another protocol", handshake, strings.Replace(switching, "Upgrade: websocket", "Upgrade: h2c", 1)},
		{"two protocols", handshake, strings.Replace(switching, "Upgrade: websocket", "Upgrade: websocket, h2c", 1)},
		{"two Upgrade fields", handshake, with(switching, "Upgrade: websocket")},
		{"no Accept", handshake, without(switching, "Sec-WebSocket-Accept")},
		{"wrong Accept", handshake, strings.Replace(switching, accept, wrong, 1)},
		{"Accept in another case", handshake, strings.Replace(switching, accept, strings.ToUpper(accept), 1)},
		{"two Accepts", handshake, with(switching, "Sec-WebSocket-Accept: "+accept)},
		{"Accept list", handshake, strings.Replace(switching, accept, accept+", "+accept, 1)},
		{"HTTP/1.0", handshake, strings.Replace(switching, "HTTP/1.1", "HTTP/1.0", 1)},
		{"HTTP/2.0", handshake, strings.Replace(switching, "HTTP/1.1", "HTTP/2.0", 1)},
		{"subprotocol without an offer", handshake, with(switching, "Sec-WebSocket-Protocol: chat")},
		{"subprotocol that was not offered", offering, with(switching, "Sec-WebSocket-Protocol: v5.channel.k8s.io")},
		{"subprotocol in another case", offering, with(switching, "Sec-WebSocket-Protocol: Chat")},
		{"two subprotocols", offering, with(switching, "Sec-WebSocket-Protocol: chat", "Sec-WebSocket-Protocol: chat")},
		{"subprotocol list", offering, with(switching, "Sec-WebSocket-Protocol: v4.channel.k8s.io, chat")},
		{"extension without an offer", handshake, with(switching, "Sec-WebSocket-Extensions: permessage-deflate")},
		{"extension that was not offered", offering, with(switching, "Sec-WebSocket-Extensions: permessage-deflate, x-mux; a=1")},
		{"a line without a colon", handshake, with(switching, "X")},
		{"two lengths", handshake, with(switching, "Content-Length: 1", "Content-Length: 2")},
	} {
		t.Run(test.name, func(t *testing.T) {
			after := make(chan string, 1)
			target := wiretest.Target(t, func(p *wiretest.Peer) {
				p.Header()
				p.Send(test.reply)
				after <- p.Ended()
			})
			addr, outcomes := watched(t, wsupgrade.Options{}, target)
			p := wiretest.Dial(t, addr)
			p.Send(test.request + "early")
			resp, _ := p.Response("GET")
			if resp.StatusCode != 502 {
				t.Errorf("response %s, want 502", resp.Status)
			}
			for _, name := range []string{"Upgrade", "Sec-Websocket-Accept", "Sec-Websocket-Protocol"} {
				if resp.Header[name] != nil {
					t.Errorf("%s: %q in the refusal", name, resp.Header[name])
				}
			}
			if o := wiretest.Await(t, outcomes, "outcome"); o.err == nil || !o.err.BytesSent || o.err.HeaderSent || o.err.ClientSide() || o.err.Target != target {
				t.Errorf("outcome %+v", o)
			}
			if got := wiretest.Await(t, after, "end at the target"); got != "" {
				t.Errorf("the target got %q", got)
			}
		})
	}
}

func TestValid101(t *testing.T) {
	leaktest.Check(t)
	offering := with(handshake, "Sec-WebSocket-Protocol: v4.channel.k8s.io, chat", "Sec-WebSocket-Protocol: third", "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits, x")
	hint := "HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n"
	for _, test := range []struct {
		name, request, reply string
		header               string // of the client's 101; "" = switching's
	}{
		{"plain", handshake, switching, ""},
		{"other case", handshake, strings.NewReplacer("Connection: Upgrade", "connection: keep-alive, UPGRADE", "Upgrade: websocket", "upgrade: WebSocket").Replace(switching), ""},
		{"103 before", handshake, hint + switching, ""},
		{"100 and 103 before", handshake, "HTTP/1.1 100 Continue\r\n\r\n" + hint + switching, ""},
		{"subprotocol", offering, with(switching, "Sec-WebSocket-Protocol: chat"), with(switching, "Sec-Websocket-Protocol: chat")},
		{"subprotocol of the second line", offering, with(switching, "Sec-WebSocket-Protocol: third"), with(switching, "Sec-Websocket-Protocol: third")},
		{"empty subprotocol", offering, with(switching, "Sec-WebSocket-Protocol:"), ""},
		{"empty extensions", handshake, with(switching, "Sec-WebSocket-Extensions: ,"), ""},
		{"extension", offering, with(switching, "Sec-WebSocket-Extensions: permessage-deflate; server_no_context_takeover"), with(switching, "Sec-Websocket-Extensions: permessage-deflate; server_no_context_takeover")},
		{"hop-by-hop fields", handshake, with(strings.Replace(switching, "Connection: Upgrade", "Connection: Upgrade, X-Hop, Sec-WebSocket-Accept", 1),
			"Content-Length: 5", "Trailer: X-T", "Keep-Alive: timeout=5", "Proxy-Authenticate: Basic", "X-Hop: gone", "X-Kept: kept"),
			with(switching, "X-Kept: kept")},
		{"chunked", handshake, with(switching, "Transfer-Encoding: chunked"), ""},
		{"space in a field name", handshake, with(switching, "X Y: z"), ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			target := wiretest.Target(t, func(p *wiretest.Peer) {
				p.Header()
				p.Send(test.reply + "hello")
				p.Receive("early")
				p.Send("bye")
			})
			p := wiretest.Dial(t, gateway(t, wsupgrade.Options{}, target))
			p.Send(test.request + "early")
			if test.header == "" {
				test.header = switching
			}
			sameHeader(t, p.Header(), test.header)
			p.Receive("hellobye")
			if rest := p.Rest(); rest != "" {
				t.Errorf("rest %q", rest)
			}
		})
	}
}

// sameHeader compares headers by their sorted lines, names in any case.
func sameHeader(t *testing.T, got, want string) {
	t.Helper()
	if g, w := wiretest.Lines(got), wiretest.Lines(want); g != w {
		t.Errorf("header is\n%s\nwant\n%s", g, w)
	}
}
