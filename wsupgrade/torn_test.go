package wsupgrade

import (
	"bytes"
	"net"
	"os"
	"strings"
	"testing"
	"time"
)

// tearing is a connection that accepts some bytes, fails a write in the middle, and accepts more
// after it.
type tearing struct {
	net.Conn
	room int
	got  []byte
}

func (c *tearing) Write(p []byte) (int, error) {
	n := min(len(p), c.room)
	c.got = append(c.got, p[:n]...)
	if n < len(p) {
		c.room = 1 << 10
		return n, os.ErrDeadlineExceeded
	}
	return n, nil
}

func (c *tearing) SetWriteDeadline(time.Time) error { return nil }

// An end that has accepted a part of a write is sent no Close frame and no ping: they would be
// inside of a frame.
func TestNothingInsideAFrame(t *testing.T) {
	frame := appendFrame(nil, finBit|1, true, []byte(strings.Repeat("x", 100)))
	for at := range frame {
		client, target := &tearing{room: 1 << 10}, &tearing{room: at}
		tunnel := newTunnel(client, target, new(limits))
		tunnel.up.codec, tunnel.down.codec = new(passthroughCodec), new(passthroughCodec)
		if err := tunnel.up.pass(frame); err == nil {
			t.Fatal("the write has not failed")
		}
		if tunnel.sendPing(&tunnel.down) {
			t.Errorf("a ping is sent after %d bytes of a frame", at)
		}
		tunnel.requestClose(ServiceRestart, "bye")
		if !bytes.Equal(target.got, frame[:at]) {
			t.Errorf("after %d bytes of a frame %q follows", at, target.got[at:])
		}
		if want := appendFrame(nil, finBit|opClose, false, closePayload(ServiceRestart, "bye")); !bytes.Equal(client.got, want) {
			t.Errorf("the other end is sent %q, want %q", client.got, want)
		}
		if !tunnel.up.shut {
			t.Error("more of the client would be passed on")
		}
	}
}
