package wsupgrade

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"time"
)

// alive asks the side that d reads from for a sign of life, if there was none for
// a while. It returns false if the side owes one. The answer is not passed on.
func (t *Tunnel) alive(d *direction, next *alarm) bool {
	interval, last := t.limits.ping, d.lastRead()
	if d.asked > last {
		return next.at(d.asked, interval)
	}
	if next.at(last, interval) {
		return true
	}
	if t.ask(d) {
		d.asked = next.now
	}
	next.at(next.now, interval) // where a frame was under way: then
	return true
}

// tokenLen is the length of a direction's token in the payload of our pings, with a number of two
// bytes behind it. No end makes up the same one.
const tokenLen = 6

// pings numbers the pings that one side is sent.
type pings struct {
	token [tokenLen]byte
	sent  uint16
}

// next returns the payload of the next ping.
func (p *pings) next() []byte {
	if p.sent++; p.sent == 1 {
		_, _ = rand.Read(p.token[:]) // never fails
	}
	return binary.BigEndian.AppendUint16(p.token[:tokenLen:tokenLen], p.sent)
}

// answers reports whether the payload of a Pong answers ping or one before it: a ping may be sent
// before the last one's answer has come. latest reports whether no other answer can follow (RFC
// 6455 section 5.5.3: an end may answer only the latest).
func answers(payload, ping []byte) (one, latest bool) {
	one = ping != nil && len(payload) == len(ping) && bytes.Equal(payload[:tokenLen], ping[:tokenLen])
	return one, one && bytes.Equal(payload, ping)
}

// ask sends a ping to the side that d reads from. It returns false if the side is in
// the middle of a frame or is ending. A side that accepts nothing does not hold up the caller, who has the
// tunnel's other times to look at.
func (t *Tunnel) ask(d *direction) bool {
	to := d.back()
	if !to.mu.TryLock() {
		return false
	}
	if to.shut || to.torn || !to.codec.here() || to.codec.toldClose() || !d.mu.TryLock() {
		to.unlock()
		return false
	}
	payload := d.pings.next()
	d.codec.expect(payload)
	d.unlock()
	begin(func() {
		_, err := to.Write(appendFrame(nil, finBit|opPing, to.toTarget, payload))
		to.unlock()
		to.broken(err)
	})()
	return true
}

// lastRead is the time from the tunnel's start to the last read.
func (d *direction) lastRead() time.Duration { return time.Duration(d.last.Load()) }
