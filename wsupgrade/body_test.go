package wsupgrade_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/errs"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/wsupgrade"
	"github.com/culvert-go/culvert/wsupgrade/wstest"
)

// dockerExec is the request of "docker exec".
const dockerExec = "POST /exec/1/start HTTP/1.1\r\nHost: docker\r\nConnection: Upgrade\r\nUpgrade: tcp\r\nContent-Type: application/json\r\n\r\n"

const execBody = `{"Detach":false,"Tty":true}`

var tcp = wsupgrade.Options{Protocols: []string{"websocket", "tcp"}}

// An upgrade to a protocol other than websocket may have a body, which is sent to the target whole,
// with its length, before the tunnel's bytes.
func TestUpgradeWithABody(t *testing.T) {
	leaktest.Check(t)
	length := fmt.Sprintf("Content-Length: %d", len(execBody))
	chunked := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(execBody), execBody)
	for name, test := range map[string]struct{ field, body, interim, want string }{
		"length":           {length, execBody, "", execBody},
		"chunked":          {"Transfer-Encoding: chunked", chunked, "", execBody},
		"chunked, empty":   {"Transfer-Encoding: chunked", "0\r\n\r\n", "", ""},
		"expects continue": {length + "\r\nExpect: 100-continue", execBody, "HTTP/1.1 100 Continue\r\n\r\n", execBody},
	} {
		t.Run(name, func(t *testing.T) {
			headers := make(chan string, 1)
			target := wiretest.Target(t, func(p *wiretest.Peer) {
				headers <- p.Header()
				p.Receive(test.want)
				p.Send("HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\nprompt")
				p.Receive("early, later")
				p.Send("output")
			})
			p := wiretest.Dial(t, gateway(t, tcp, target))
			p.Send(with(dockerExec, test.field) + test.body + "early, ")
			p.Receive(test.interim)
			if header := p.Header(); !strings.HasPrefix(header, "HTTP/1.1 101 ") {
				t.Errorf("the client got %q", header)
			}
			p.Send("later")
			p.Receive("promptoutput")
			header := wiretest.Await(t, headers, "request")
			if want := fmt.Sprintf("\r\nContent-Length: %d\r\n", len(test.want)); !strings.Contains(header, want) || strings.Contains(header, "chunked") || strings.Contains(header, "Expect") {
				t.Errorf("the target got %q, want %q", header, want)
			}
			p.End()
			p.Rest()
		})
	}
}

// A target that does not switch responds to such a request like any other, and the client's
// connection continues after it.
func TestUpgradeWithABodyRefused(t *testing.T) {
	leaktest.Check(t)
	target := wiretest.Target(t, func(p *wiretest.Peer) {
		p.Header()
		p.Receive(execBody)
		p.Send("HTTP/1.1 409 Conflict\r\nContent-Length: 7\r\n\r\nstopped")
		p.Ended()
	})
	p := wiretest.Dial(t, gateway(t, tcp, target))
	p.Send(with(dockerExec, fmt.Sprintf("Content-Length: %d", len(execBody))) + execBody)
	if resp, body := p.Response("POST"); resp.StatusCode != 409 || body != "stopped" {
		t.Errorf("%s %q", resp.Status, body)
	}
	p.Send("GET /secret HTTP/1.1\r\nHost: a\r\n\r\n")
	if resp, body := p.Response("GET"); resp.StatusCode != 200 || body != "kept by the gateway" {
		t.Errorf("after it: %s %q", resp.Status, body)
	}
}

// A body that is too large, too slow or broken is the client's failure, and nothing of it is sent
// to the target. A WebSocket has none.
func TestUpgradeWithABadBody(t *testing.T) {
	leaktest.Check(t)
	target := wiretest.Target(t, func(p *wiretest.Peer) {
		if got := p.Ended(); got != "" {
			t.Errorf("the target got %q", got)
		}
	})
	slow := tcp
	slow.HandshakeTimeout = 50 * time.Millisecond
	large := strings.Repeat("x", 64<<10+1)
	for name, test := range map[string]struct {
		o      wsupgrade.Options
		sent   string
		status int
	}{
		"large":     {tcp, with(dockerExec, fmt.Sprintf("Content-Length: %d", len(large))) + large, 413},
		"larger":    {slow, with(dockerExec, "Content-Length: 200000") + large, 413}, // and no more of it
		"slow":      {slow, with(dockerExec, "Content-Length: 5") + "half", 408},
		"broken":    {tcp, with(dockerExec, "Transfer-Encoding: chunked") + "zz\r\n", 400},
		"websocket": {tcp, with(handshake, "Content-Length: 5") + "hello", 400},
	} {
		t.Run(name, func(t *testing.T) {
			addr, outcomes := watched(t, test.o, target)
			p := wiretest.Dial(t, addr)
			p.Send(test.sent)
			p.Status(test.status)
			if o := wiretest.Await(t, outcomes, "outcome"); o.err == nil || !o.err.ClientSide() || o.err.BytesSent || o.err.Status() != test.status {
				t.Errorf("outcome %+v", o.err)
			}
		})
	}
}

// If no target can be dialled, a client that does not send its body is not waited for.
func TestUpgradeWithoutItsBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := tcp
		o.HandshakeTimeout = 50 * time.Millisecond
		o.Dial = func(context.Context, string, string) (net.Conn, error) { return nil, syscall.ECONNREFUSED }
		if got := wiretest.Unsent(t, toTarget(t, o, "192.0.2.1:80"), with(dockerExec, "Content-Length: 5")); !strings.HasPrefix(got, "HTTP/1.1 502 ") {
			t.Errorf("the client got %q", got)
		}
	})
}

// The time for a body is not the target's: after one that took most of it the target has its whole
// time, at whose end the client gets a 504 and is not taken for one that has left.
func TestTimeOfASlowBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target := wstest.NewRawTarget(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		}))
		defer target.Close()
		o := tcp
		o.Dial, o.HandshakeTimeout = target.Dial, 5*time.Second
		f := forwarder(t, o)
		gateway := wstest.Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			for attempts := 1; ; attempts++ { // the second one has the body at once
				_, err := f.Forward(w, r, outboundTo(r, target.URL().Host))
				if e := errs.As(err); e == nil || e.Kind != culvert.Timeout || attempts == 2 {
					wsupgrade.Refuse(w, e)
					return
				}
			}
		}))
		defer gateway.Close()
		conn, err := gateway.Conn()
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		begun := time.Now()
		p := wiretest.NewPeer(t, conn)
		p.Send(with(dockerExec, fmt.Sprintf("Content-Length: %d", len(execBody))) + execBody[:5])
		time.Sleep(4 * time.Second) // of the bubble's time
		p.Send(execBody[5:])
		if resp, _ := p.Response("POST"); resp.StatusCode != http.StatusGatewayTimeout || time.Since(begun) != 14*time.Second {
			t.Errorf("%s after %v", resp.Status, time.Since(begun))
		}
	})
}
