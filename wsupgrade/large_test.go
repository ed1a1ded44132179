package wsupgrade_test

import (
	"encoding/binary"
	"io"
	"testing"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/wsupgrade"
)

// largeFrame returns a binary frame of n bytes, masked with the key 0 as a client's.
func largeFrame(n int) []byte {
	header := binary.BigEndian.AppendUint64([]byte{0x82, 0x80 | 127}, uint64(n))
	return append(append(header, 0, 0, 0, 0), wiretest.Pattern(n)...)
}

// Frames of all sizes, which may be spliced from socket to socket, are echoed byte for byte, also
// if an end does not read for a while.
func TestLargeFrames(t *testing.T) {
	leaktest.Check(t)
	r := registry(t, wsupgrade.RegistryOptions{})
	addr := gateway(t, wsupgrade.Options{Registry: r}, mirroring(t))
	p := open(t, addr)
	var sent []byte
	for _, n := range []int{100000, 10, 1 << 20, 0, 40000, 32768, 32767, 32769, 5, 8 << 20, 65536, 65535, 3} {
		sent = append(sent, largeFrame(n)...)
	}
	done := make(chan error, 1)
	go func() {
		_, err := p.Write(sent)
		done <- err
	}()
	got := make([]byte, len(sent))
	if _, err := io.ReadFull(p.R, got); err != nil {
		t.Fatal(err)
	}
	wiretest.SameBytes(t, "frames", got, sent)
	if err := wiretest.Await(t, done, "end of the writing"); err != nil {
		t.Error(err)
	}
	wantBytes(t, only(t, r), int64(len(sent)))
	p.End()
	p.Rest()
}

// A Close frame waits for the end of a large one that follows another.
func TestCloseBehindALargeFrame(t *testing.T) {
	leaktest.Check(t)
	r := registry(t, wsupgrade.RegistryOptions{})
	whole := largeFrame(4 << 20)
	half := len(whole) / 2
	got := make(chan []byte, 1)
	target := wiretest.Target(t, func(p *wiretest.Peer) {
		p.Header()
		p.Send(switching)
		frame := make([]byte, len(whole))
		_, _ = io.ReadFull(p.R, frame)
		_, _ = io.ReadFull(p.R, frame[:half])
		got <- nil
		_, _ = io.ReadFull(p.R, frame[half:])
		got <- frame
		wantClose(t, p.R, 1001, "", true)
		p.Send("\x88\x02\x03\xe9")
	})
	p := open(t, gateway(t, wsupgrade.Options{Registry: r}, target))
	p.Send(string(whole) + string(whole[:half]))
	wiretest.Await(t, got, "a frame and a half")
	go only(t, r).Close(wsupgrade.GoingAway, "")
	wantClose(t, p.R, 1001, "", false)
	p.Send(string(whole[half:]) + masked(closing, "\x03\xe9"))
	wiretest.SameBytes(t, "frame", wiretest.Await(t, got, "frame"), whole)
	p.Ended()
}

// A side that leaves in the middle of a large frame ends the tunnel, and nothing of the tunnel is
// left.
func TestGoneInALargeFrame(t *testing.T) {
	leaktest.Check(t)
	frame := largeFrame(16 << 20)
	for _, who := range []string{"client", "target"} {
		underWay, ended := make(chan struct{}, 1), make(chan string, 1)
		target := wiretest.Target(t, func(p *wiretest.Peer) {
			p.Header()
			p.Send(switching)
			_, _ = io.ReadFull(p.R, make([]byte, 1<<20))
			if who == "target" {
				p.Reset()
				return
			}
			underWay <- struct{}{}
			ended <- p.Ended()
		})
		addr := gateway(t, wsupgrade.Options{}, target)
		for range wiretest.Size(20, 3) {
			p := open(t, addr)
			go func() { _, _ = p.Write(frame) }()
			if who == "target" {
				p.Ended()
				p.Close()
				continue
			}
			wiretest.Await(t, underWay, "a part of the frame")
			p.Reset()
			wiretest.Await(t, ended, "end at the target")
		}
	}
}
