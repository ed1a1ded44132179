package wsupgrade_test

import (
	"io"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/wsupgrade"
)

const secret = "GET /secret HTTP/1.1\r\nHost: culvert.test\r\n\r\n"

// If a target or a gateway refuses a version, the connection must remain an HTTP one: the next
// request passes through the mux again (as in CVE-2020-11724).
func TestRefusedVersionDoesNotOpenATunnel(t *testing.T) {
	leaktest.Check(t)
	target := wiretest.Target(t, func(p *wiretest.Peer) {
		if header := p.Header(); strings.Contains(header, "/secret") {
			t.Error("the second request reached the target")
		}
		p.Send("HTTP/1.1 426 Upgrade Required\r\nConnection: upgrade\r\nUpgrade: websocket\r\n" +
			"Sec-WebSocket-Version: 13, 8\r\nContent-Length: 3\r\n\r\nno\n")
		if after := p.Ended(); after != "" {
			t.Errorf("the target got %q after the handshake", after)
		}
	})
	addr := gateway(t, wsupgrade.Options{}, target)
	odd := strings.Replace(handshake, "Version: 13", "Version: 777", 1)
	for _, test := range []struct {
		name, request, versions, body string
	}{
		{"by the gateway", odd, "13", "Upgrade Required\n"},
		{"by the target", handshake, "13, 8", "no\n"},
	} {
		for _, together := range []bool{false, true} {
			p := wiretest.Dial(t, addr)
			if together {
				p.Send(test.request + secret)
			} else {
				p.Send(test.request)
			}
			resp, body := p.Response("GET")
			if resp.StatusCode != 426 || body != test.body {
				t.Errorf("%s: %d %q, want 426 %q", test.name, resp.StatusCode, body, test.body)
			}
			if resp.Header.Get("Upgrade") != "websocket" || resp.Header.Get("Connection") != "Upgrade" || resp.Header.Get("Sec-Websocket-Version") != test.versions {
				t.Errorf("%s: header %v", test.name, resp.Header)
			}
			if !together {
				p.Send(secret)
			}
			if resp, body := p.Response("GET"); resp.StatusCode != 200 || body != "kept by the gateway" {
				t.Errorf("%s: second response %d %q", test.name, resp.StatusCode, body)
			}
			p.Close()
		}
	}
}

func TestOtherResponsesAreRelayed(t *testing.T) {
	leaktest.Check(t)
	long := strings.Repeat("x", 100_000)
	for _, test := range []struct {
		name, reply string
		status      int
		body        string
		field       string // one that must be received, as "Name: value"
	}{
		{"200 dressed as an upgrade", "HTTP/1.1 200 OK\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: " + accept + "\r\nContent-Length: 5\r\n\r\nplain", 200, "plain", "Content-Length: 5"},
		{"302", "HTTP/1.1 302 Found\r\nLocation: /login?a=%2F\r\nContent-Length: 0\r\n\r\n", 302, "", "Location: /login?a=%2F"},
		{"401", "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"x\"\r\nContent-Length: 4\r\n\r\nwho?", 401, "who?", "Www-Authenticate: Basic realm=\"x\""},
		{"503 chunked", "HTTP/1.1 503 Service Unavailable\r\nTransfer-Encoding: chunked\r\nRetry-After: 7\r\n\r\n3\r\nnot\r\n4\r\n now\r\n0\r\n\r\n", 503, "not now", "Retry-After: 7"},
		{"404 until the end", "HTTP/1.0 404 Not Found\r\nX-Length: none\r\n\r\n" + long, 404, long, "X-Length: none"},
		{"103 before", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\nX-A: b\r\n\r\nno", 403, "no", "X-A: b"},
	} {
		t.Run(test.name, func(t *testing.T) {
			target := wiretest.Target(t, func(p *wiretest.Peer) {
				p.Header()
				p.Send(test.reply)
			})
			p := wiretest.Dial(t, gateway(t, wsupgrade.Options{}, target))
			p.Send(handshake + secret)
			resp, body := p.Response("GET")
			if resp.StatusCode != test.status || body != test.body {
				t.Errorf("%d with %d bytes of body, want %d with %d", resp.StatusCode, len(body), test.status, len(test.body))
			}
			name, value, _ := strings.Cut(test.field, ": ")
			if resp.Header.Get(name) != value {
				t.Errorf("%s is %q, want %q", name, resp.Header.Get(name), value)
			}
			for _, gone := range []string{"Upgrade", "Connection", "Link"} {
				if resp.Header[gone] != nil {
					t.Errorf("%s: %q was relayed", gone, resp.Header[gone])
				}
			}
			// The client's early bytes are its next request.
			if resp, body := p.Response("GET"); resp.StatusCode != 200 || body != "kept by the gateway" {
				t.Errorf("next response %d %q", resp.StatusCode, body)
			}
		})
	}
}

// Half a body must not look complete.
func TestBrokenResponseIsAborted(t *testing.T) {
	leaktest.Check(t)
	target := wiretest.Target(t, func(p *wiretest.Peer) {
		p.Header()
		p.Send("HTTP/1.1 500 Oops\r\nContent-Length: 10\r\n\r\nhalf")
	})
	addr, outcomes := watched(t, wsupgrade.Options{}, target)
	p := wiretest.Dial(t, addr)
	p.Send(handshake)
	p.Header()
	if rest := p.Ended(); len(rest) > 4 {
		t.Errorf("body %q", rest)
	}
	if o := wiretest.Await(t, outcomes, "outcome"); o.err == nil || !o.err.HeaderSent || o.err.ClientSide() || o.err.Target != target || o.status != 500 {
		t.Errorf("outcome %+v", o)
	}
}

// A client that leaves in the middle of an endless response ends the exchange with the target, and
// is not the target's fault.
func TestClientLeavesDuringAResponse(t *testing.T) {
	leaktest.Check(t)
	target := wiretest.Target(t, func(p *wiretest.Peer) {
		p.Header()
		p.Send("HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n")
		block := strings.Repeat("x", 64<<10)
		for {
			if _, err := io.WriteString(p, block); err != nil {
				return
			}
		}
	})
	addr, outcomes := watched(t, wsupgrade.Options{}, target)
	p := wiretest.Dial(t, addr)
	p.Send(handshake)
	p.Header()
	p.Close()
	if o := wiretest.Await(t, outcomes, "outcome"); o.err == nil || o.err.Status() != 499 || !o.err.ClientSide() {
		t.Errorf("outcome %+v", o)
	}
}
