package wsupgrade

import (
	"fmt"
	"net"
	"time"
)

// The codes of RFC 6455 section 7.4.1 and of IANA's registry that a gateway sends.
const (
	// GoingAway is for a server that goes down or a tunnel that has had its time.
	GoingAway = 1001
	// ProtocolError is for a frame that breaks the protocol.
	ProtocolError = 1002
	// InvalidData is for a text that is not UTF-8.
	InvalidData = 1007
	// PolicyViolation is for a message that is refused.
	PolicyViolation = 1008
	// TooBig is for a message over the limit.
	TooBig = 1009
	// InternalError is for an Observer, or one of the connections, that has panicked.
	InternalError = 1011
	// ServiceRestart is for a server that comes back: a client may connect again.
	ServiceRestart = 1012
)

// closeGrace is how long the ends of a WebSocket have to answer a Close frame.
const closeGrace = 5 * time.Second

// frameTimeout is how long an end may take to accept one of our frames while a caller waits.
const frameTimeout = time.Second

// CloseError says why a WebSocket is closed, to both its ends.
type CloseError struct {
	// Code is the status code of the Close frame.
	Code int
	// Reason is its text in UTF-8, of which the frame has room for 123 bytes: it is cut between two characters behind
	// that, and bytes that are not UTF-8 are replaced by U+FFFD.
	Reason string
}

// Error returns the code and the reason.
func (e *CloseError) Error() string { return fmt.Sprintf("WebSocket closed: %d %s", e.Code, e.Reason) }

// closing is the end that somebody has asked for.
type closing struct {
	code   int
	reason string
}

// Close ends the tunnel. A WebSocket's ends are sent a Close frame each, behind the
// frame that is under way, and have five seconds to answer; other protocols know no
// such word, and both connections are closed at once. reason is as CloseError.Reason. The first call counts. It does
// not wait for the end, see Done, and at most two seconds for ends that accept no frame.
func (t *Tunnel) Close(code int, reason string) {
	if !t.shut(code, reason) {
		return
	}
	if t.up.codec == nil {
		t.Abort()
		return
	}
	t.fix(time.Now().Add(closeGrace))
}

// shut sends the Close frames, now or when the frames under way are through. It
// returns false if that was asked for before.
func (t *Tunnel) shut(code int, reason string) bool {
	if !t.closing.CompareAndSwap(nil, &closing{code, reason}) {
		return false
	}
	if t.stream { // whose writes may last longer than their deadline, see streamConn.Close
		defer begin(t.down.tryShut)()
	} else {
		t.down.tryShut()
	}
	t.up.tryShut()
	return true
}

// begin runs a function that writes a frame. It returns one that waits for its end, but not for an end that accepts nothing.
func begin(write func()) (wait func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		write()
	}()
	return func() {
		select {
		case <-done:
		case <-time.After(frameTimeout):
		}
	}
}

// tryShut sends the Close frame if the direction is idle, and ends dst if it waits for nothing
// else. A direction that is busy does so itself, when it is not any more (unlock).
func (d *direction) tryShut() {
	for d.mu.TryLock() {
		d.shutHere()
		shut, dst := d.shut, d.dst()
		d.mu.Unlock()
		if !shut || !d.endDst.Load() { // set after this, it is for the one who sets it
			return
		}
		if d.endDst.CompareAndSwap(true, false) {
			d.t.end(dst)
		}
	}
}

// shutHere sends the Close frame if dst stands at a boundary, and has not been sent
// one by src. A dst that took a part of a frame gets none: it would be a part of that frame. The caller holds d.mu.
func (d *direction) shutHere() {
	if d.shut || d.codec == nil || !d.torn && !d.codec.here() {
		return
	}
	d.shut = true
	if d.torn || d.codec.toldClose() {
		return
	}
	c := d.t.closing.Load()
	// A dst that takes nothing must not hold up who closes many tunnels.
	d.t.boundWrite(d.dst(), time.Now().Add(frameTimeout))
	_, _ = d.Write(appendFrame(nil, finBit|opClose, d.toTarget, closePayload(c.code, c.reason)))
	// Nothing more is written, and an HTTP/2 stream is reset when its time is over.
	d.t.boundWrite(d.dst(), time.Time{})
}

// boundWrite bounds the writes to dst, zero for no bound. It does not undo an Abort.
func (t *Tunnel) boundWrite(dst net.Conn, deadline time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.fixed && t.deadline.Equal(past) {
		deadline = past
	}
	_ = t.contain(func() error { return dst.SetWriteDeadline(deadline) })
}
