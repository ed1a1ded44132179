package wsupgrade

import (
	"crypto/rand"
	"time"
)

// alive asks the side that d reads from for a sign of life, if there was none for
// a while. It returns false if the side owes one. The answer is not passed on.
func (t *Tunnel) alive(d *direction, next *alarm) bool {
	interval, last := t.limits.ping, d.lastRead()
	if d.asked > last {
		return next.at(d.asked + interval)
	}
	if next.at(last + interval) {
		return true
	}
	if t.ask(d) {
		d.asked = next.now
	}
	next.at(next.now + interval) // where a frame was under way: then
	return true
}

// pingLen is the length of our pings' payload: long enough that no end makes up the
// same one.
const pingLen = 8

// ask sends a ping to the side that d reads from. It returns false if the side is in
// the middle of a frame or is ending.
func (t *Tunnel) ask(d *direction) bool {
	to := &t.up
	if d == to {
		to = &t.down
	}
	if !to.mu.TryLock() {
		return false
	}
	defer to.unlock()
	if to.shut || !to.codec.here() || to.codec.toldClose() || !d.mu.TryLock() {
		return false
	}
	payload := make([]byte, pingLen)
	_, _ = rand.Read(payload) // never fails
	d.codec.expect(payload)
	d.unlock()
	_, _ = to.Write(appendFrame(nil, finBit|opPing, to.toTarget, payload))
	return true
}

// lastRead is the time from the tunnel's start to the last read.
func (d *direction) lastRead() time.Duration { return time.Duration(d.last.Load()) }
