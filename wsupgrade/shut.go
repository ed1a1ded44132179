package wsupgrade

import (
	"fmt"
	"net"
	"time"

	"github.com/culvert-go/culvert/internal/deadline"
)

// The codes of RFC 6455 section 7.4.1 and of IANA's registry that a gateway sends.
const (
	// GoingAway is for a server that shuts down, or a tunnel that has reached a limit.
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
	// ServiceRestart is for a server that restarts: a client may connect again.
	ServiceRestart = 1012
)

// closeTimeout is how long the ends of a WebSocket have to respond to a Close frame.
const closeTimeout = 5 * time.Second

// frameTimeout is how long an end may take to accept one of our frames while a caller waits for it.
const frameTimeout = time.Second

// CloseError closes a WebSocket, with a code and a reason for both its ends.
type CloseError struct {
	// Code is the status code of the Close frame.
	Code int
	// Reason is the text of the Close frame. It is cut between two characters to the 123 bytes for
	// which the frame has room, and bytes that are not UTF-8 are replaced by U+FFFD.
	Reason string
}

// Error returns the code and the reason.
func (e *CloseError) Error() string { return fmt.Sprintf("WebSocket closed: %d %s", e.Code, e.Reason) }

// closing is the code and reason of the first close that was requested.
type closing struct {
	code   int
	reason string
}

// Close ends the tunnel. Each end of a WebSocket is sent a Close frame, after the frame that is
// under way, and has five seconds to respond. Other protocols have no such message, and both
// connections are closed at once. reason is treated as CloseError.Reason is. Only the first call
// has an effect. Close does not wait for the tunnel's end, see Done, and at most two seconds for
// ends that accept no frame.
func (t *Tunnel) Close(code int, reason string) {
	if !t.requestClose(code, reason) {
		return
	}
	if t.up.codec == nil {
		t.Abort()
		return
	}
	t.setFinalDeadline(time.Now().Add(closeTimeout))
}

// requestClose sends the Close frames, now or after the frames that are under way. It returns false
// if that was requested before.
func (t *Tunnel) requestClose(code int, reason string) bool {
	if !t.closing.CompareAndSwap(nil, &closing{code, reason}) {
		return false
	}
	if t.stream { // writes to it may last longer than their deadline, see streamConn.Close
		defer runWrite(t.down.tryClose)()
	} else {
		t.down.tryClose()
	}
	t.up.tryClose()
	return true
}

// runWrite runs write, which writes a frame, on a goroutine. wait waits until it returns, but not
// longer than frameTimeout.
func runWrite(write func()) (wait func()) {
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

// tryClose sends the Close frame if the direction is idle, and ends dst if only that was missing. A
// busy direction calls it itself when it is idle again (unlock).
func (d *direction) tryClose() {
	for d.mu.TryLock() {
		d.sendCloseAtBoundary()
		shut, dst := d.shut, d.dst()
		d.mu.Unlock()
		if !shut || !d.endDst.Load() { // if it is set after this, endSrc calls tryClose
			return
		}
		if d.endDst.CompareAndSwap(true, false) {
			d.t.closeWrite(dst)
		}
	}
}

// sendCloseAtBoundary sends the Close frame if dst is at a boundary and was not passed one of src.
// A dst that accepted a part of a frame is sent none: it would be a part of that frame. The caller
// holds d.mu.
func (d *direction) sendCloseAtBoundary() {
	if d.shut || d.codec == nil || !d.torn && !d.codec.atBoundary() {
		return
	}
	d.shut = true
	if d.torn || d.codec.closeSent() {
		return
	}
	c := d.t.closing.Load()
	// A dst that accepts nothing must not hold up a caller that closes many tunnels.
	d.t.boundWrite(d.dst(), time.Now().Add(frameTimeout))
	_, _ = d.Write(appendFrame(nil, finBit|opClose, d.toTarget, closePayload(c.code, c.reason)))
	// Nothing more is written, and a write deadline that passes would reset an HTTP/2 stream.
	d.t.boundWrite(d.dst(), time.Time{})
}

// boundWrite bounds the writes to dst; the zero time means no bound. It does not undo an Abort.
func (t *Tunnel) boundWrite(dst net.Conn, until time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.deadlineFinal && t.deadline.Equal(deadline.Past) {
		until = deadline.Past
	}
	_ = t.contain(func() error { return dst.SetWriteDeadline(until) })
}
