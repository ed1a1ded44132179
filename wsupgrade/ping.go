package wsupgrade

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"time"
)

// pingIfSilent sends a ping to the side that d reads from, if it was silent for PingInterval. It
// returns false if the Pong to an earlier one is overdue. The Pong is not passed on.
func (t *Tunnel) pingIfSilent(d *direction, next *alarm) bool {
	interval, last := t.limits.ping, d.lastRead()
	if d.lastPing > last {
		return next.at(d.lastPing, interval)
	}
	if next.at(last, interval) {
		return true
	}
	if t.sendPing(d) {
		d.lastPing = next.now
	}
	next.at(next.now, interval) // where a frame was under way: then
	return true
}

// tokenLen is the length of a direction's random token in the payload of our pings, which a number
// of two bytes follows. No end sends the same one by chance.
const tokenLen = 6

// pings numbers the pings that are sent to one side.
type pings struct {
	token [tokenLen]byte
	sent  uint16
}

// nextPayload returns the payload of the next ping.
func (p *pings) nextPayload() []byte {
	if p.sent++; p.sent == 1 {
		_, _ = rand.Read(p.token[:]) // never fails
	}
	return binary.BigEndian.AppendUint16(p.token[:tokenLen:tokenLen], p.sent)
}

// matchPong reports whether a Pong with the payload is the response to ping or to an earlier one: a
// ping may be sent before the Pong to the last one was received. latest reports whether no other
// Pong can follow (RFC 6455 section 5.5.3: an end may respond only to the latest).
func matchPong(payload, ping []byte) (ours, latest bool) {
	ours = ping != nil && len(payload) == len(ping) && bytes.Equal(payload[:tokenLen], ping[:tokenLen])
	return ours, ours && bytes.Equal(payload, ping)
}

// sendPing sends a ping to the side that d reads from. It returns false if that side is in the
// middle of a frame or is ending. A side that accepts nothing does not hold up the caller, which
// has the tunnel's other limits to enforce.
func (t *Tunnel) sendPing(d *direction) bool {
	to := d.reverse()
	if !to.mu.TryLock() {
		return false
	}
	if to.shut || to.torn || !to.codec.atBoundary() || to.codec.closeSent() || !d.mu.TryLock() {
		to.unlock()
		return false
	}
	payload := d.pings.nextPayload()
	d.codec.expectPong(payload)
	d.unlock()
	runWrite(func() {
		_, err := to.Write(appendFrame(nil, finBit|opPing, to.toTarget, payload))
		to.unlock()
		to.closeOnError(err)
	})()
	return true
}

// lastRead returns the time from the tunnel's start to the last read.
func (d *direction) lastRead() time.Duration { return time.Duration(d.last.Load()) }
