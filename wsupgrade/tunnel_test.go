package wsupgrade_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/record"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/wsupgrade"
)

// The client has sent its last byte long before the target has.
func TestClientHalfCloses(t *testing.T) {
	leaktest.Check(t)
	tail := wiretest.Pattern(1 << 20)
	target := wiretest.Target(t, func(p *wiretest.Peer) {
		p.Header()
		p.Send(switching)
		if got := p.Rest(); got != "question" {
			t.Errorf("the target got %q", got)
		}
		p.Send(string(tail))
	})
	p := wiretest.Dial(t, gateway(t, wsupgrade.Options{}, target))
	p.Send(handshake)
	p.Header()
	p.Send("question")
	p.End()
	wiretest.SameBytes(t, "tail", []byte(p.Rest()), tail)
}

// The target has sent its last byte long before the client has.
func TestTargetHalfCloses(t *testing.T) {
	leaktest.Check(t)
	tail := wiretest.Pattern(1 << 20)
	got := make(chan string, 1)
	target := wiretest.Target(t, func(p *wiretest.Peer) {
		p.Header()
		p.Send(switching + "response")
		p.End()
		got <- p.Rest()
	})
	p := wiretest.Dial(t, gateway(t, wsupgrade.Options{}, target))
	p.Send(handshake)
	p.Header()
	if response := p.Rest(); response != "response" {
		t.Errorf("the client got %q", response)
	}
	p.Send(string(tail))
	p.End()
	wiretest.SameBytes(t, "tail", []byte(wiretest.Await(t, got, "tail")), tail)
}

// If a target accepts nothing more while the client is still sending, what it sent before must
// still be delivered.
func TestTargetStopsAcceptingWhileTheClientSends(t *testing.T) {
	leaktest.Check(t)
	tail := wiretest.Pattern(1 << 20)
	target := wiretest.Target(t, func(p *wiretest.Peer) {
		p.Header()
		p.Send(switching)
		p.Receive("go")
		p.Send(string(tail))
		p.End()
		p.Ended() // closing with unread bytes would be a reset
	})
	refused := make(chan struct{})
	p := wiretest.Dial(t, gateway(t, wsupgrade.Options{Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		return &deafConn{Conn: conn, refused: refused}, err
	}}, target))
	p.Send(handshake)
	p.Header()
	p.Send("go")
	got := make([]byte, len(tail))
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		for {
			if _, err := io.WriteString(p, "more"); err != nil {
				return
			}
		}
	}()
	n, err := io.ReadFull(p.R, got)
	if err != nil {
		t.Errorf("after %d of %d bytes: %v", n, len(tail), err)
	}
	wiretest.SameBytes(t, "tail", got[:n], tail)
	p.Close()
	wiretest.Await(t, sent, "end of sending")
}

// deafConn accepts everything up to "go" and then nothing more; what the target sends after that is
// read only when a write was refused. A real target's reset would be a race: its kernel may discard
// what it has not sent yet.
type deafConn struct {
	net.Conn
	deaf    atomic.Bool
	once    sync.Once
	refused chan struct{}
}

func (c *deafConn) Write(b []byte) (int, error) {
	if c.deaf.Load() {
		c.once.Do(func() { close(c.refused) })
		return 0, syscall.ECONNRESET
	}
	c.deaf.Store(bytes.HasPrefix(b, []byte("go")))
	return c.Conn.Write(b)
}

func (c *deafConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.deaf.Load() {
		<-c.refused
	}
	return n, err
}

func TestEightMebibytesEachWay(t *testing.T) {
	leaktest.Check(t)
	up, down := wiretest.Pattern(8<<20), wiretest.Pattern(8<<20+1)
	got := make(chan string, 1)
	target := wiretest.Target(t, func(p *wiretest.Peer) {
		p.Header()
		p.Send(switching)
		var sending sync.WaitGroup
		sending.Go(func() { p.Send(string(down)); p.End() })
		got <- p.Rest()
		sending.Wait()
	})
	done := make(chan *record.Recorder, 1)
	f := forwarder(t, wsupgrade.Options{})
	p := wiretest.Dial(t, wiretest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, record := record.With(r.Context())
		r = r.WithContext(ctx)
		if _, err := f.Forward(w, r, outboundTo(r, target)); err != nil {
			t.Errorf("Forward: %v", err)
		}
		done <- record
	})))
	p.Send(handshake)
	p.Header()
	var sending sync.WaitGroup
	sending.Go(func() { p.Send(string(up)); p.End() })
	wiretest.SameBytes(t, "down", []byte(p.Rest()), down)
	wiretest.SameBytes(t, "up", []byte(wiretest.Await(t, got, "end")), up)
	sending.Wait()
	if r := wiretest.Await(t, done, "record"); r.BytesIn != int64(len(up)) || r.BytesOut != int64(len(down)) {
		t.Errorf("record %+v, want %d in and %d out", r, len(up), len(down))
	}
}

// The client sends more early bytes than any buffer holds, while the target is slow to respond.
func TestManyEarlyBytes(t *testing.T) {
	leaktest.Check(t)
	early := wiretest.Pattern(3 << 20)
	got, release := make(chan string, 1), make(chan struct{})
	target := wiretest.Target(t, func(p *wiretest.Peer) {
		p.Header()
		<-release
		p.Send(switching)
		got <- p.Rest()
	})
	p := wiretest.Dial(t, gateway(t, wsupgrade.Options{}, target))
	p.Send(handshake + string(early[:64<<10]))
	var sending sync.WaitGroup
	sending.Go(func() { p.Send(string(early[64<<10:])) })
	close(release)
	p.Header()
	sending.Wait()
	p.End()
	wiretest.SameBytes(t, "early", []byte(wiretest.Await(t, got, "end")), early)
}

func TestTunnelEndsWithTheContext(t *testing.T) {
	leaktest.Check(t)
	ended := make(chan string, 1)
	target := wiretest.Target(t, func(p *wiretest.Peer) {
		p.Header()
		p.Send(switching)
		ended <- p.Ended()
	})
	ctx, cancel := context.WithCancel(context.Background())
	outcomes := make(chan error, 1)
	f := forwarder(t, wsupgrade.Options{})
	p := wiretest.Dial(t, wiretest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, err := f.Forward(w, r.WithContext(ctx), outboundTo(r, target))
		outcomes <- err
	})))
	p.Send(handshake)
	p.Header()
	cancel()
	if err := wiretest.Await(t, outcomes, "outcome"); err != nil {
		t.Errorf("Forward: %v", err)
	}
	p.Ended()
	wiretest.Await(t, ended, "end at the target")
}

// A reset of either side ends the other.
func TestResets(t *testing.T) {
	leaktest.Check(t)
	reset := func(p *wiretest.Peer) {
		p.Conn.(interface{ SetLinger(int) error }).SetLinger(0)
		p.Close()
	}
	ended := make(chan string, 1)
	target := wiretest.Target(t, func(p *wiretest.Peer) {
		if strings.Contains(p.Header(), "/reset") {
			p.Send(switching)
			p.Receive("x")
			reset(p)
			return
		}
		p.Send(switching)
		ended <- p.Ended()
	})
	addr := gateway(t, wsupgrade.Options{}, target)

	p := wiretest.Dial(t, addr)
	p.Send(strings.Replace(handshake, "/chat", "/reset", 1))
	p.Header()
	p.Send("x")
	p.Ended()

	p = wiretest.Dial(t, addr)
	p.Send(handshake)
	p.Header()
	reset(p)
	wiretest.Await(t, ended, "end at the target")
}
