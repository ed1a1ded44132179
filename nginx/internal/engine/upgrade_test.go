package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
)

// As with nginx an upgrade to any protocol is forwarded if the file lets its Upgrade field
// through; if not the upstream receives a plain request. An upgrade that could hide further
// requests is never forwarded.
func TestUpgradeToAnyProtocol(t *testing.T) {
	leaktest.Check(t)
	up := wiretest.Target(t, func(p *wiretest.Peer) {
		head := p.Header()
		for _, protocol := range []string{"tcp", "SPDY/3.1"} {
			if strings.Contains(head, "\r\nUpgrade: "+protocol+"\r\n") {
				p.Send("HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: " + protocol + "\r\n\r\nhello")
				p.Receive("you")
				p.End()
				return
			}
		}
		p.Send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nplain")
		p.Ended()
	})
	s := serve(t, map[string]string{"nginx.conf": strings.ReplaceAll(`events {} http { access_log off;
		map $http_upgrade $websocket { websocket websocket; default ""; }
		server { proxy_set_header Connection upgrade;
			location / { proxy_pass http://UP; proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade; }
			location /only { proxy_pass http://UP; proxy_set_header Upgrade $websocket; proxy_set_header Connection upgrade; }
			location /fixed { proxy_pass http://UP; proxy_set_header Upgrade websocket; proxy_set_header Connection upgrade; }
			location /spdy { proxy_pass http://UP; proxy_set_header Upgrade "tcp, spdy/3.1"; proxy_set_header Connection upgrade; }
		} }`, "UP", up)})
	for _, test := range []struct {
		method, target, protocol string
		switches                 bool
	}{
		{"GET", "/", "tcp", true}, {"POST", "/", "SPDY/3.1", true}, {"GET", "/", "h2c", false}, {"GET", "/", "TLS/1.2", false},
		{"GET", "/only", "tcp", false}, {"GET", "/fixed", "tcp", false}, {"POST", "/spdy", "SPDY/3.1", true},
	} {
		t.Run(test.method+" "+test.target+" "+test.protocol, func(t *testing.T) {
			client := wiretest.Dial(t, s.first)
			client.Send(test.method + " " + test.target + " HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: " + test.protocol + "\r\n\r\n")
			if !test.switches {
				if _, body := client.Response(test.method); body != "plain" {
					t.Errorf("the client got %q", body)
				}
				return
			}
			client.Receive("HTTP/1.1 101 ")
			if head := client.Header(); !strings.Contains(head, "\r\nUpgrade: "+test.protocol+"\r\n") {
				t.Errorf("the client got %q", head)
			}
			client.Receive("hello")
			client.Send("you")
			client.Rest()
		})
	}
}

// "docker exec" is a POST with a small JSON object, which reaches the upstream with the upgrade. A
// body that is too large for that is sent with a plain request.
func TestUpgradeWithABody(t *testing.T) {
	leaktest.Check(t)
	const exec = `{"Detach":false,"Tty":true}`
	large := strings.Repeat("x", 64<<10+1)
	up := wiretest.Target(t, func(p *wiretest.Peer) {
		if !strings.Contains(p.Header(), "\r\nUpgrade: tcp\r\n") {
			p.Receive(large)
			p.Send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nplain")
			p.Ended()
			return
		}
		p.Receive(exec)
		p.Send("HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\nprompt")
		p.Receive("input")
	})
	s := serve(t, map[string]string{"nginx.conf": strings.ReplaceAll(`events {} http { access_log off; server { location / {
		proxy_pass http://UP; proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade; } } }`, "UP", up)})
	send := func(body string) *wiretest.Peer {
		client := wiretest.Dial(t, s.first)
		client.Send(fmt.Sprintf("POST /exec/1/start HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: tcp\r\nContent-Length: %d\r\n\r\n%s", len(body), body))
		return client
	}
	client := send(exec)
	if head := client.Header(); !strings.HasPrefix(head, "HTTP/1.1 101 ") {
		t.Fatalf("the client got %q", head)
	}
	client.Receive("prompt")
	client.Send("input")
	client.Rest()
	if _, body := send(large).Response("POST"); body != "plain" {
		t.Errorf("the client got %q", body)
	}
}

// An upstream may end the lines of its 101 without carriage returns, as those of any response.
func TestUpgradeWithBareLineFeeds(t *testing.T) {
	up := wiretest.Target(t, func(p *wiretest.Peer) {
		p.Header()
		p.Send("HTTP/1.1 101 Switching\nUpgrade: foo\nConnection: Upgrade\n\nhello")
		p.Receive("bye")
	})
	s := serve(t, map[string]string{"nginx.conf": strings.ReplaceAll(`events {} http { access_log off; server { location / {
		proxy_pass http://UP; proxy_set_header Upgrade foo; proxy_set_header Connection upgrade; } } }`, "UP", up)})
	client := wiretest.Dial(t, s.first)
	client.Send("GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: foo\r\n\r\n")
	if head := client.Header(); !strings.HasPrefix(head, "HTTP/1.1 101 ") || !strings.Contains(head, "\r\nUpgrade: foo\r\n") {
		t.Fatalf("the client got %q", head)
	}
	client.Receive("hello")
	client.Send("bye")
	client.Rest()
}
