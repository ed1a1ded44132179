package wsupgrade_test

import (
	"testing"
	"time"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/wsupgrade"
)

// A side that closes while a drain waits for the end of a frame to it still gets that frame, and
// the Close frame after it.
func TestDrainWhileTheReceiverCloses(t *testing.T) {
	leaktest.Check(t)
	for _, closes := range []string{"client", "target"} {
		r := registry(t, wsupgrade.RegistryOptions{})
		upgraded := make(chan *wiretest.Peer)
		over := make(chan struct{})
		addr := gateway(t, wsupgrade.Options{Registry: r}, wiretest.Target(t, func(p *wiretest.Peer) {
			p.Header()
			p.Send(switching)
			upgraded <- p
			<-over
		}))
		client := open(t, addr)
		target := wiretest.Await(t, upgraded, "upgrade")
		sender, receiver, send := target, client, frame
		if closes == "target" {
			sender, receiver, send = client, target, masked
		}
		listed(t, r, 1)
		tunnel := only(t, r)
		whole := send(text, "a frame in two pieces")
		sender.Send(whole[:9])
		receiver.Receive(whole[:9])
		drained := make(chan error, 1)
		go func() { drained <- r.Drain(t.Context(), wsupgrade.GoingAway) }()
		wantClose(t, sender.R, 1001, "", closes == "client") // the idle direction is sent its own at once
		before := tunnel.LastActive()
		if closes == "client" {
			receiver.Send(masked(closing, "\x03\xe8"))
		} else {
			receiver.Send(frame(closing, "\x03\xe8"))
		}
		for deadline := time.Now().Add(10 * time.Second); !tunnel.LastActive().After(before); time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("the tunnel has not heard of it")
			}
		}
		sender.Send(whole[9:])
		receiver.Receive(whole[9:])
		wantClose(t, receiver.R, 1001, "", closes == "target")
		if rest := receiver.Ended(); rest != "" {
			t.Errorf("after the Close frame: %q", rest)
		}
		sender.Send(send(closing, "\x03\xe9"))
		sender.Ended()
		if err := wiretest.Await(t, drained, "end of the drain"); err != nil {
			t.Error(err)
		}
		close(over)
	}
}
