package wsupgrade_test

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/wsupgrade"
)

// maskedText returns a client's text frame (RFC 6455 section 5.2) of less than 126 bytes.
func maskedText(s string) string {
	frame := []byte{0x81, 0x80 | byte(len(s)), 0, 0, 0, 0}
	mask := frame[2:6]
	binary.BigEndian.PutUint32(mask, 0x37fa213d)
	for i := range len(s) {
		frame = append(frame, s[i]^mask[i%4])
	}
	return string(frame)
}

// A web terminal sends its size as soon as it opens. The frame was received in one segment with the
// handshake, remained in the buffer that Hijack returns, and was never read: the terminal kept its
// 80x24 and onMessage never fired (golang/go#80875).
func TestAccidentTerminalsFirstFrameNeverArrived(t *testing.T) {
	leaktest.Check(t)
	size := maskedText(`{"Width":120,"Height":40}`)
	target := wiretest.Target(t, func(p *wiretest.Peer) {
		p.Header()
		p.Send(switching + "\x81\x07welcome") // the target is early too
		p.Receive(size)
		p.Send("\x81\x02ok")
		p.Receive(maskedText("ls"))
	})
	p := wiretest.Dial(t, gateway(t, wsupgrade.Options{}, target))
	p.Send(handshake + size)
	sameHeader(t, p.Header(), switching)
	p.Receive("\x81\x07welcome\x81\x02ok")
	p.Send(maskedText("ls"))
	if rest := p.Rest(); rest != "" {
		t.Errorf("rest %q", rest)
	}
}

// A proxy subscribed to upgrades on its first plain request, so the first WebSocket of a fresh
// process was pending until a user had loaded a page (http-proxy-middleware #207, #112, #432). Here
// each gateway's very first request is an upgrade; the second gateway's is one that must be
// refused, and gets a response as well.
func TestAccidentFirstWebSocketNeededAWarmUp(t *testing.T) {
	leaktest.Check(t)
	target := wiretest.Target(t, func(p *wiretest.Peer) {
		p.Header()
		p.Send(switching)
		p.Receive(maskedText("hi"))
		p.Send("\x81\x02hi")
	})
	p := wiretest.Dial(t, gateway(t, wsupgrade.Options{}, target))
	p.Send(handshake)
	sameHeader(t, p.Header(), switching)
	p.Send(maskedText("hi"))
	p.Receive("\x81\x02hi")

	for request, status := range map[string]int{
		with(handshake, "Origin: http://evil.test"): 403,
		without(handshake, "Sec-WebSocket-Key"):     400,
		without(handshake, "Upgrade"):               426,
	} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			p := wiretest.Dial(t, gateway(t, wsupgrade.Options{}, target))
			p.Send(request)
			p.Status(status)
		})
	}
}
