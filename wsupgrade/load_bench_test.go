package wsupgrade_test

import (
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/wsupgrade"
)

// engines are both engines, for benchmarks that compare them in one run.
var engines = []struct {
	name     string
	portable bool
}{{"portable", true}, {"system", false}}

// BenchmarkEcho sends 64 bytes to an echo through the tunnel and reads them back.
func BenchmarkEcho(b *testing.B) {
	for _, engine := range engines {
		b.Run(engine.name, func(b *testing.B) {
			p := open(b, gateway(b, wsupgrade.Options{Portable: engine.portable}, mirroring(b)))
			for b.Loop() {
				echoOnce(b, p)
			}
		})
	}
}

var echoed = masked(0x82, string(make([]byte, 58)))

func echoOnce(b *testing.B, p *wiretest.Peer) {
	_, _ = io.WriteString(p.Conn, echoed)
	if _, err := io.ReadFull(p.R, make([]byte, len(echoed))); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkEchoBesideBulk simulates typing: it sends 64 bytes every ten milliseconds, beside twenty
// tunnels that are saturated both ways with large frames. It reports the median of the echoes'
// times and what the twenty moved.
func BenchmarkEchoBesideBulk(b *testing.B) {
	for _, engine := range engines {
		b.Run(engine.name, func(b *testing.B) {
			addr := gateway(b, wsupgrade.Options{Portable: engine.portable}, mirroring(b))
			var moved atomic.Int64
			stop := saturate(b, addr, 20, &moved)
			p := open(b, addr)
			_ = p.SetDeadline(time.Time{})
			for range 5 {
				echoOnce(b, p)
			}
			var took []time.Duration
			before := moved.Load()
			for b.Loop() {
				start := time.Now()
				echoOnce(b, p)
				took = append(took, time.Since(start))
				time.Sleep(10 * time.Millisecond)
			}
			mb := float64(moved.Load()-before) / 1e6
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
			b.ReportMetric(mb/b.Elapsed().Seconds(), "bulk-MB/s")
			stop()
		})
	}
}

// saturate keeps n tunnels to echoes busy until stop is called, and counts the echoed bytes.
func saturate(b *testing.B, addr string, n int, moved *atomic.Int64) (stop func()) {
	frame := largeFrame(1 << 20)
	var running sync.WaitGroup
	var peers []*wiretest.Peer
	for range n {
		p := open(b, addr)
		_ = p.SetDeadline(time.Time{})
		peers = append(peers, p)
		running.Go(func() {
			for err := error(nil); err == nil; {
				_, err = p.Conn.Write(frame)
			}
		})
		running.Go(func() {
			buf := make([]byte, 256<<10)
			for {
				m, err := p.Conn.Read(buf)
				if moved.Add(int64(m)); err != nil {
					return
				}
			}
		})
	}
	return func() {
		for _, p := range peers {
			p.Close()
		}
		running.Wait()
	}
}
