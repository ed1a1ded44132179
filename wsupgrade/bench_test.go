package wsupgrade_test

import (
	"io"
	"testing"

	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/wsupgrade"
)

// BenchmarkTunnel sends 32 KiB to an echo through the tunnel and reads it back.
func BenchmarkTunnel(b *testing.B) {
	client := wiretest.Dial(b, gateway(b, wsupgrade.Options{}, mirror(b)))
	client.Send(handshake)
	client.Header()
	message := wiretest.Pattern(32 << 10)
	back := make([]byte, len(message))
	b.SetBytes(2 * int64(len(message)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := client.Write(message); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(client.R, back); err != nil {
			b.Fatal(err)
		}
	}
	client.End()
}

// BenchmarkHandshake opens and closes a tunnel.
func BenchmarkHandshake(b *testing.B) {
	addr := gateway(b, wsupgrade.Options{}, mirror(b))
	b.ReportAllocs()
	for b.Loop() {
		client := wiretest.Dial(b, addr)
		client.Send(handshake)
		client.Header()
		client.Close()
	}
}

func mirror(b *testing.B) (addr string) {
	return wiretest.Target(b, func(p *wiretest.Peer) {
		p.Header()
		p.Send(switching)
		_, _ = io.Copy(p.Conn, p.R)
	})
}
