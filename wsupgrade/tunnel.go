package wsupgrade

import (
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/culvert-go/culvert/internal/deadline"
	"github.com/culvert-go/culvert/internal/panics"
)

const (
	// lingerTimeout is how long one side of a WebSocket may be silent after the other has ended.
	// Its last bytes must not be cut off because the other is done sending (caddy#8026), but RFC
	// 6455 knows no half-open connection, so a side that never ends must not hold the tunnel for
	// ever.
	lingerTimeout = time.Minute
	// drainTimeout is how long a tunnel continues after one side stopped accepting bytes. What that
	// side sent before is on its way and is still delivered.
	drainTimeout = 5 * time.Second
	// drainSilence is how long the client of an HTTP/2 stream may be silent after the target has
	// ended, where the protocol knows half-open connections: what is under way from the client is
	// still received, and only after that can the stream end.
	drainSilence = 500 * time.Millisecond
)

// Tunnel is a client and a target that have switched protocols. Its methods are safe for concurrent
// use by multiple goroutines, and may be called when it has ended.
type Tunnel struct {
	// ID is the tunnel's number in its Registry, from 1 on.
	ID uint64
	// Protocol is the protocol that was switched to, "websocket" for instance.
	Protocol string
	// Subprotocol is the WebSocket's Sec-WebSocket-Protocol, "" if it has none.
	Subprotocol string
	// Target is the address that was dialled.
	Target string
	// Client is the address of the client: the one that filters.RealIP has found, else the
	// connection's remote address.
	Client string
	// Start is when the tunnel was opened, by the response that was sent to the client.
	Start time.Time

	client, target net.Conn
	stream         bool      // the client is an HTTP/2 stream
	up, down       direction // to the target, to the client
	limits         *limits
	admission      *admission
	loops          *loops                       // nil: the portable engine moves the bytes
	closing        atomic.Pointer[closing]      // nil: the end was not requested
	panicked       atomic.Pointer[panics.Error] // nil: neither its Observer nor a connection has panicked

	mu            sync.Mutex
	done          chan struct{} // nil: Done was not called yet
	finished      bool          // both connections are closed
	deadlineFinal bool          // the deadlines are final
	deadline      time.Time
	halfClosed    atomic.Bool // one direction has ended; set with mu held
}

// newTunnel joins two connections.
func newTunnel(client, target net.Conn, l *limits) *Tunnel {
	t := &Tunnel{Start: time.Now(), client: client, target: target, limits: l}
	if c, ok := client.(*streamConn); ok {
		t.stream, c.t = true, t
	}
	t.up.t, t.up.toTarget = t, true
	t.down.t = t
	return t
}

// finish releases the tunnel's admission and closes Done. Both connections are closed.
func (t *Tunnel) finish() {
	t.admission.release()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.finished = true
	if t.done != nil {
		close(t.done)
	}
}

// Bytes returns how many bytes were delivered to the target and to the client.
func (t *Tunnel) Bytes() (toTarget, toClient int64) {
	return t.up.delivered.Load(), t.down.delivered.Load()
}

// LastActive returns when bytes were last received, from either side.
func (t *Tunnel) LastActive() time.Time {
	return t.Start.Add(time.Duration(max(t.up.last.Load(), t.down.last.Load())))
}

// Done returns a channel that is closed when the tunnel has ended and both its connections are
// closed.
func (t *Tunnel) Done() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.done == nil {
		t.done = make(chan struct{})
		if t.finished {
			close(t.done)
		}
	}
	return t.done
}

// Abort closes both connections at once. A WebSocket's ends then see the code 1006; Close ends it
// cleanly.
func (t *Tunnel) Abort() { t.setFinalDeadline(deadline.Past) }

// closeWrite passes the end of one direction on to dst, which may still send. A dst that can't be
// half-closed just receives no more bytes.
func (t *Tunnel) closeWrite(dst net.Conn) {
	switch dst := dst.(type) {
	case interface{ CloseWrite() error }:
		if t.up.closeOnError(t.contain(dst.CloseWrite)) {
			return
		}
	case *streamConn:
		dst.endWithin(t.streamGrace())
	}
	t.mu.Lock()
	t.halfClosed.Store(true)
	t.mu.Unlock()
	t.renewReadDeadline(dst) // for a read that has begun before
}

// streamGrace returns how long the client of a stream may continue after the target's end, which
// can't be passed on to it before its own half ends, and how long it may be silent meanwhile.
func (t *Tunnel) streamGrace() (all, silent time.Duration) {
	switch {
	case t.up.codec == nil:
		return drainTimeout, drainSilence
	case !t.down.dstClosing(), t.up.srcClosed():
		// A WebSocket whose target ends without a Close frame is broken: nothing reads what the
		// client sends.
		return 0, 0
	}
	return drainTimeout, drainTimeout // to respond to the Close frame
}

// dstClosing reports whether dst was sent a Close frame, or may just be sent one.
func (d *direction) dstClosing() bool {
	if !d.mu.TryLock() {
		return true
	}
	defer d.unlock()
	return d.shut || d.codec.closeSent()
}

// srcClosed reports whether src has sent its Close frame.
func (d *direction) srcClosed() bool {
	if !d.mu.TryLock() {
		return false // its bytes are being passed on
	}
	defer d.unlock()
	return d.codec.closeReceived()
}

// renewReadDeadline gives the remaining direction its time for the next read. Other protocols than
// WebSocket do use a half-open connection: docker attach reads the output long after it closed the
// input.
func (t *Tunnel) renewReadDeadline(src net.Conn) {
	if !t.halfClosed.Load() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.deadlineFinal && t.up.codec != nil {
		_ = t.contain(func() error { return src.SetReadDeadline(time.Now().Add(lingerTimeout)) })
	}
}

// setFinalDeadline sets the deadlines for good. After it only an Abort can set others.
func (t *Tunnel) setFinalDeadline(until time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.deadlineFinal && until != deadline.Past {
		return
	}
	t.deadlineFinal, t.deadline = true, until
	t.setDeadline(t.client)
	t.setDeadline(t.target)
}

// setDeadline gives c the tunnel's last deadline. A connection that panics then has none, so that it is closed. The caller
// holds t.mu.
func (t *Tunnel) setDeadline(c net.Conn) {
	err := t.contain(func() error { return c.SetDeadline(t.deadline) })
	if _, panicked := err.(*panics.Error); panicked {
		_ = t.contain(c.Close)
	}
}

// replaceConns replaces the tunnel's connections by others to the same ends. The tunnel may be
// closed meanwhile.
func (t *Tunnel) replaceConns(client, target net.Conn) {
	t.up.mu.Lock() // before t.mu, as where a direction bounds its writes
	t.down.mu.Lock()
	t.mu.Lock()
	t.client, t.target = client, target
	if t.deadlineFinal {
		_ = client.SetDeadline(t.deadline)
		_ = target.SetDeadline(t.deadline)
	}
	t.mu.Unlock()
	t.up.unlock()
	t.down.unlock()
}
