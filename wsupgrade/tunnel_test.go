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
	"github.com/culvert-go/culvert/internal/result"
	"github.com/culvert-go/culvert/wsupgrade"
)

// The client is done sending long before the target is.
func TestClientHalfCloses(t *testing.T) {
	leaktest.Check(t)
	tail := pattern(1 << 20)
	target := backend(t, func(p *peer) {
		p.head()
		p.send(switching)
		if got := p.rest(); got != "question" {
			t.Errorf("the target got %q", got)
		}
		p.send(string(tail))
	})
	p := dial(t, gateway(t, wsupgrade.Options{}, target))
	p.send(handshake)
	p.head()
	p.send("question")
	p.end()
	sameBytes(t, "tail", []byte(p.rest()), tail)
}

// The target is done sending long before the client is.
func TestTargetHalfCloses(t *testing.T) {
	leaktest.Check(t)
	tail := pattern(1 << 20)
	got := make(chan string, 1)
	target := backend(t, func(p *peer) {
		p.head()
		p.send(switching + "answer")
		p.end()
		got <- p.rest()
	})
	p := dial(t, gateway(t, wsupgrade.Options{}, target))
	p.send(handshake)
	p.head()
	if answer := p.rest(); answer != "answer" {
		t.Errorf("the client got %q", answer)
	}
	p.send(string(tail))
	p.end()
	sameBytes(t, "tail", []byte(await(t, got, "tail")), tail)
}

// A target that takes nothing any more while the client is still sending must
// not take with it what it said before.
func TestTargetStopsTakingWhileTheClientSends(t *testing.T) {
	leaktest.Check(t)
	tail := pattern(1 << 20)
	target := backend(t, func(p *peer) {
		p.head()
		p.send(switching)
		p.receive("go")
		p.send(string(tail))
		p.end()
		p.ended() // closing with bytes unread would be such a reset
	})
	refused := make(chan struct{})
	p := dial(t, gateway(t, wsupgrade.Options{Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		return &deafConn{Conn: conn, refused: refused}, err
	}}, target))
	p.send(handshake)
	p.head()
	p.send("go")
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
	n, err := io.ReadFull(p.r, got)
	if err != nil {
		t.Errorf("after %d of %d bytes: %v", n, len(tail), err)
	}
	sameBytes(t, "tail", got[:n], tail)
	p.Close()
	await(t, sent, "end of sending")
}

// deafConn takes everything up to "go" and then nothing more; what the target
// says behind that is read only after a write was refused. A real target's reset
// would be a race: its kernel may throw away what it has not sent yet.
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
	up, down := pattern(8<<20), pattern(8<<20+1)
	got := make(chan string, 1)
	target := backend(t, func(p *peer) {
		p.head()
		p.send(switching)
		var sending sync.WaitGroup
		sending.Go(func() { p.send(string(down)); p.end() })
		got <- p.rest()
		sending.Wait()
	})
	done := make(chan *result.Result, 1)
	f := forwarder(t, wsupgrade.Options{})
	p := dial(t, serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, record := result.With(r.Context())
		r = r.WithContext(ctx)
		if _, err := f.Forward(w, r, outboundTo(r, target)); err != nil {
			t.Errorf("Forward: %v", err)
		}
		done <- record
	})))
	p.send(handshake)
	p.head()
	var sending sync.WaitGroup
	sending.Go(func() { p.send(string(up)); p.end() })
	sameBytes(t, "down", []byte(p.rest()), down)
	sameBytes(t, "up", []byte(await(t, got, "end")), up)
	sending.Wait()
	if r := await(t, done, "record"); r.BytesIn != int64(len(up)) || r.BytesOut != int64(len(down)) {
		t.Errorf("record %+v, want %d in and %d out", r, len(up), len(down))
	}
}

// More early bytes than any buffer holds, while the target takes its time.
func TestManyEarlyBytes(t *testing.T) {
	leaktest.Check(t)
	early := pattern(3 << 20)
	got, release := make(chan string, 1), make(chan struct{})
	target := backend(t, func(p *peer) {
		p.head()
		<-release
		p.send(switching)
		got <- p.rest()
	})
	p := dial(t, gateway(t, wsupgrade.Options{}, target))
	p.send(handshake + string(early[:64<<10]))
	var sending sync.WaitGroup
	sending.Go(func() { p.send(string(early[64<<10:])) })
	close(release)
	p.head()
	sending.Wait()
	p.end()
	sameBytes(t, "early", []byte(await(t, got, "end")), early)
}

func TestTunnelEndsWithTheContext(t *testing.T) {
	leaktest.Check(t)
	ended := make(chan string, 1)
	target := backend(t, func(p *peer) {
		p.head()
		p.send(switching)
		ended <- p.ended()
	})
	ctx, cancel := context.WithCancel(context.Background())
	outcomes := make(chan error, 1)
	f := forwarder(t, wsupgrade.Options{})
	p := dial(t, serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, err := f.Forward(w, r.WithContext(ctx), outboundTo(r, target))
		outcomes <- err
	})))
	p.send(handshake)
	p.head()
	cancel()
	if err := await(t, outcomes, "outcome"); err != nil {
		t.Errorf("Forward: %v", err)
	}
	p.ended()
	await(t, ended, "end at the target")
}

// A reset of either side ends the other.
func TestResets(t *testing.T) {
	leaktest.Check(t)
	reset := func(p *peer) {
		p.Conn.(interface{ SetLinger(int) error }).SetLinger(0)
		p.Close()
	}
	ended := make(chan string, 1)
	target := backend(t, func(p *peer) {
		if strings.Contains(p.head(), "/reset") {
			p.send(switching)
			p.receive("x")
			reset(p)
			return
		}
		p.send(switching)
		ended <- p.ended()
	})
	addr := gateway(t, wsupgrade.Options{}, target)

	p := dial(t, addr)
	p.send(strings.Replace(handshake, "/chat", "/reset", 1))
	p.head()
	p.send("x")
	p.ended()

	p = dial(t, addr)
	p.send(handshake)
	p.head()
	reset(p)
	await(t, ended, "end at the target")
}
