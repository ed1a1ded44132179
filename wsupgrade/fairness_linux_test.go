package wsupgrade

import (
	"encoding/binary"
	"io"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/culvert-go/culvert/internal/leaktest"
)

// A direction moves a bounded number of bytes in a round of its loop, however many it has, and
// bytes that another tunnel receives meanwhile are passed on in the next round.
func TestVisitsAreBounded(t *testing.T) {
	leaktest.Check(t)
	const bulkTunnels, most = 10, 512 << 10
	owner := new(loops)
	l, err := newLoop(owner)
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	l.buf = make([]byte, loopBuffer)
	var flowing sync.WaitGroup
	defer flowing.Wait()
	var pairs []*pollPair
	for range bulkTunnels {
		p, client, target := onLoop(t, l)
		pairs = append(pairs, p)
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
	quiet, typist, screen := onLoop(t, l)
	defer typist.Close()
	defer screen.Close()
	defer func() {
		for _, p := range append(pairs, quiet) {
			p.mu.Lock()
			p.finish(l)
			p.mu.Unlock()
		}
	}()

	var events [128]syscall.EpollEvent
	before := make([]int64, len(pairs))
	queued := 0
	deadline := time.Now().Add(20 * time.Second)
	for round := 0; round < 200 || queued < 2; round++ {
		if time.Now().After(deadline) {
			t.Fatalf("at most %d directions had more to move than a visit allows", queued)
		}
		typed := int64(0)
		if round%10 == 0 {
			if _, err := typist.Write([]byte("\x81\x80\x00\x00\x00\x00")); err != nil {
				t.Fatal(err)
			}
			typed = quiet.up.delivered() + 6
			awaitReadable(t, quiet.client.fd)
		}
		n := epollNow(l.fd, events[:])
		queued = max(queued, len(l.queue))
		l.round(events[:n])
		if got := quiet.up.delivered(); got < typed {
			t.Fatalf("round %d: %d of %d typed bytes went on", round, got, typed)
		}
		for i, p := range pairs {
			now := p.up.delivered()
			if moved := now - before[i]; moved > most {
				t.Fatalf("round %d: a direction moved %d bytes", round, moved)
			}
			before[i] = now
		}
	}
}

func (h *pollHalf) delivered() int64 { return h.direction().delivered.Load() }

// onLoop makes a tunnel on the loop, and returns its other ends.
func onLoop(t *testing.T, l *loop) (p *pollPair, client, target net.Conn) {
	t.Helper()
	near, client := socketPair(t)
	far, target := socketPair(t)
	tunnel := newTunnel(near, far, new(limits))
	tunnel.loops = l.owner
	tunnel.up.codec, tunnel.down.codec = new(passthroughCodec), new(passthroughCodec)
	p = &pollPair{t: tunnel}
	p.up = pollHalf{pair: p, toTarget: true}
	p.down = pollHalf{pair: p}
	l.tunnels++
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
			t.Fatal("nothing was received")
		}
	}
}
