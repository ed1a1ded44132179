package simulate

import (
	"context"
	"io"
	"testing"
	"time"
)

// The network knows whether bytes were sent before others that go the other way had arrived, however late those are.
func TestArrival(t *testing.T) {
	const pause = 3 * time.Second
	for _, c := range []struct {
		name    string
		fault   Fault
		waits   time.Duration // before the other end sends
		arrives bool
		crosses bool
	}{
		{"smooth, crossing", Fault{}, 0, true, true},
		{"smooth, behind", Fault{}, 50 * time.Millisecond, true, false},
		{"paused, crossing", Fault{Kind: FaultPause, At: 1, Pause: pause}, 2 * time.Second, true, true},
		{"paused, behind", Fault{Kind: FaultPause, At: 1, Pause: pause}, 4 * time.Second, true, false},
		{"ended, behind", Fault{Kind: FaultFIN, At: 1}, 50 * time.Millisecond, true, false},
		{"silent", Fault{Kind: FaultSilence, At: 1}, time.Minute, false, false},
	} {
		j := inBubble(t, mostSeconds, func(*Journal) {
			link := Link{Delay: 10 * time.Millisecond, Window: 1 << 10}
			faulty := link
			faulty.Fault = c.fault
			n := NewNetwork(new(Tally))
			listener := n.Listen(gatewayAddr, 1)
			conn, err := n.connect(context.Background(), "192.0.2.7", gatewayAddr, Dialling{}, faulty, link)
			if err != nil {
				t.Error(err)
				return
			}
			peer, err := listener.Accept()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.WriteString(conn, "12")
			told, arrives := conn.out.arrival()
			time.Sleep(c.waits)
			_, _ = io.WriteString(peer, "3")
			time.Sleep(time.Minute)
			sent := conn.in.sendingSince()
			if arrives != c.arrives || arrives && sent.After(told) == c.crosses {
				t.Errorf("%s: arrives %v at %v, the other end sent at %v", c.name, arrives, told, sent)
			}
			conn.Reset()
			listener.Close()
		})
		for _, b := range j.broken {
			t.Errorf("%s: %v", c.name, b)
		}
	}
}
