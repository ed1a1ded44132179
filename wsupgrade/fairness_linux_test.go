package wsupgrade

import (
	"encoding/binary"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/netloop"
)

// A direction moves a bounded number of bytes in a round of its loop, however many it has, and
// bytes that another tunnel receives meanwhile are passed on in the next round.
func TestVisitsAreBounded(t *testing.T) {
	leaktest.Check(t)
	r := &rounds{t: t, done: make(chan struct{})}
	owner := newLoops()
	owner.AfterRound = r.after
	l := owner.Next()
	var flowing sync.WaitGroup
	defer flowing.Wait()
	for range 10 {
		p, client, target := onLoop(t, owner, l)
		r.bulk = append(r.bulk, p)
		defer client.Close()
		defer target.Close()
		flowing.Go(func() {
			header := binary.BigEndian.AppendUint64([]byte{0x82, 127}, 1<<40)
			for _, err := client.Write(header); err == nil; {
				_, err = client.Write(make([]byte, 256<<10))
			}
		})
		flowing.Go(func() { _, _ = io.Copy(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{target}) })
	}
	r.before = make([]int64, len(r.bulk))
	var screen net.Conn
	r.quiet, r.typist, screen = onLoop(t, owner, l)
	defer r.typist.Close()
	defer screen.Close()
	defer func() {
		for _, p := range append(r.bulk, r.quiet) {
			p.mu.Lock()
			p.finish()
			p.mu.Unlock()
		}
	}()
	r.observing.Store(true)
	select {
	case <-r.done:
	case <-time.After(30 * time.Second):
		t.Error("there were no 200 rounds in which two directions had more to move than a visit allows")
	}
}

// rounds checks the rounds of a loop.
type rounds struct {
	t         *testing.T
	observing atomic.Bool
	done      chan struct{} // closed when enough rounds were seen
	bulk      []*pollPair
	before    []int64 // what bulk had moved before the round
	quiet     *pollPair
	typist    net.Conn
	typed     int64 // what quiet is to have moved after the round
	n, queued int
}

// after is called by the loop after each round.
func (r *rounds) after(l *netloop.Loop) {
	if !r.observing.Load() {
		return
	}
	if got := r.quiet.up.delivered(); got < r.typed {
		r.t.Errorf("round %d: %d of %d typed bytes went on", r.n, got, r.typed)
	}
	for i, p := range r.bulk {
		now := p.up.delivered()
		if moved := now - r.before[i]; moved > 512<<10 && r.n > 0 {
			r.t.Errorf("round %d: a direction moved %d bytes", r.n, moved)
		}
		r.before[i] = now
	}
	r.n++
	r.queued = max(r.queued, l.Queued())
	if r.n >= 200 && r.queued >= 2 || r.t.Failed() {
		r.observing.Store(false)
		close(r.done)
		return
	}
	if r.n%10 == 0 {
		if _, err := r.typist.Write([]byte("\x81\x80\x00\x00\x00\x00")); err != nil {
			r.t.Error(err)
		}
		r.typed = r.quiet.up.delivered() + 6
		awaitReadable(r.t, r.quiet.client.fd)
	}
}

func (h *pollHalf) delivered() int64 { return h.direction().delivered.Load() }

// onLoop makes a tunnel on the loop, and returns its other ends.
func onLoop(t *testing.T, owner *loops, l *netloop.Loop) (p *pollPair, client, target net.Conn) {
	t.Helper()
	near, client := socketPair(t)
	far, target := socketPair(t)
	tunnel := newTunnel(near, far, new(limits))
	tunnel.loops = owner
	tunnel.up.codec, tunnel.down.codec = new(passthroughCodec), new(passthroughCodec)
	p = &pollPair{t: tunnel}
	p.up = pollHalf{pair: p, toTarget: true}
	p.down = pollHalf{pair: p}
	if err := p.copyConns(); err != nil || !p.attach(l, earlyBytes{}) {
		t.Fatal("no tunnel on the loop")
	}
	return p, client, target
}

// socketPair returns both ends of a TCP connection.
func socketPair(t *testing.T) (near, far net.Conn) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if far, err = net.Dial("tcp", listener.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if near, err = listener.Accept(); err != nil {
		t.Fatal(err)
	}
	return near, far
}

// awaitReadable waits until the bytes that were written at the other end can be read.
func awaitReadable(t *testing.T, fd int) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; {
		if n, _ := peekNow(fd, make([]byte, 6)); n == 6 {
			return
		}
		if time.Now().After(deadline) {
			t.Error("nothing was received")
			return
		}
	}
}
