package wsupgrade

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// linger is how long one side of a WebSocket may stay silent after the
	// other has ended. Its tail must not be cut off because the other is done
	// sending (caddy#8026), but RFC 6455 knows no half-open connection, so a
	// side that never ends must not hold the tunnel for ever.
	linger = time.Minute
	// lastWhile is how long a tunnel goes on after one side stopped taking bytes.
	// What that side sent before is on its way and is still delivered.
	lastWhile = 5 * time.Second
	// lastSilence is how long the client of an HTTP/2 stream may be silent after the target
	// has ended, where the protocol knows half-open connections: what is under way from it still
	// arrives, and only after that the stream can end.
	lastSilence = 500 * time.Millisecond
)

// Tunnel is a client and a target that have switched protocols. Its methods are
// safe for concurrent use, and may be called when it has ended.
type Tunnel struct {
	// ID is the tunnel's number in its Registry, from 1 on.
	ID uint64
	// Protocol is what was switched to, "websocket" for instance.
	Protocol string
	// Subprotocol is the WebSocket's Sec-WebSocket-Protocol, "" if it has none.
	Subprotocol string
	// Target is the address that was dialled.
	Target string
	// Client is the address of the client: the one that filters.RealIP has found,
	// else the connection's other end.
	Client string
	// Start is when the tunnel was opened: the client has been sent the response that does so.
	Start time.Time

	client, target net.Conn
	stream         bool      // the client is an HTTP/2 stream
	up, down       direction // to the target, to the client
	limits         *limits
	place          *place
	loops          *loops                     // nil: the portable engine moves the bytes
	closing        atomic.Pointer[closing]    // nil: the end was not requested
	panicked       atomic.Pointer[panicError] // nil: neither its Observer nor a connection has

	mu       sync.Mutex
	done     chan struct{} // nil: nobody has asked for it
	over     bool          // both connections are closed
	fixed    bool          // the deadlines are final
	deadline time.Time
	halved   atomic.Bool // one direction has ended; set with mu held
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

// finish tells that the tunnel has ended. Both connections are closed.
func (t *Tunnel) finish() {
	t.place.leave()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = true
	if t.done != nil {
		close(t.done)
	}
}

// Bytes returns how many bytes were delivered to the target and to the client.
func (t *Tunnel) Bytes() (toTarget, toClient int64) {
	return t.up.delivered.Load(), t.down.delivered.Load()
}

// LastActive returns when bytes came last, from either side.
func (t *Tunnel) LastActive() time.Time {
	return t.Start.Add(time.Duration(max(t.up.last.Load(), t.down.last.Load())))
}

// Done is closed when the tunnel has ended and both its connections are closed.
func (t *Tunnel) Done() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.done == nil {
		t.done = make(chan struct{})
		if t.over {
			close(t.done)
		}
	}
	return t.done
}

// Abort closes both connections at once. A WebSocket's ends see the code 1006 then;
// Close is kinder.
func (t *Tunnel) Abort() { t.fix(past) }

// end passes the end of one direction on to dst, which may still send. A dst that
// can't be told just gets no more bytes.
func (t *Tunnel) end(dst net.Conn) {
	switch dst := dst.(type) {
	case interface{ CloseWrite() error }:
		if t.up.broken(t.contain(dst.CloseWrite)) {
			return
		}
	case *streamConn:
		dst.endWithin(t.lastWords())
	}
	t.mu.Lock()
	t.halved.Store(true)
	t.mu.Unlock()
	t.renew(dst) // for a read that has begun before
}

// lastWords is how long the client of a stream, which can't be told of the target's end before its
// own half ends, may go on, and how long it may be silent meanwhile.
func (t *Tunnel) lastWords() (all, silent time.Duration) {
	switch {
	case t.up.codec == nil:
		return lastWhile, lastSilence
	case !t.down.closesClient(), t.up.srcClosed():
		// A WebSocket whose target ends without a Close frame is broken: nothing hears the client.
		return 0, 0
	}
	return lastWhile, lastWhile // to answer the Close frame
}

// closesClient reports whether dst was sent a Close frame, or may just be.
func (d *direction) closesClient() bool {
	if !d.mu.TryLock() {
		return true
	}
	defer d.unlock()
	return d.shut || d.codec.toldClose()
}

// srcClosed reports whether src has sent its Close frame.
func (d *direction) srcClosed() bool {
	if !d.mu.TryLock() {
		return false // it is in the middle of something
	}
	defer d.unlock()
	return d.codec.closed()
}

// renew gives the direction that remains its time for the next read. Other
// protocols than WebSocket do use a half-open connection: docker attach reads the
// output long after it closed the input.
func (t *Tunnel) renew(src net.Conn) {
	if !t.halved.Load() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.fixed && t.up.codec != nil {
		_ = t.contain(func() error { return src.SetReadDeadline(time.Now().Add(linger)) })
	}
}

// fix sets the deadlines for good. Only an earlier end can follow.
func (t *Tunnel) fix(deadline time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.fixed && deadline != past {
		return
	}
	t.fixed, t.deadline = true, deadline
	t.setDeadline(t.client)
	t.setDeadline(t.target)
}

// setDeadline gives c the tunnel's last deadline. A connection that panics then has none, so that it is closed. The caller
// holds t.mu.
func (t *Tunnel) setDeadline(c net.Conn) {
	err := t.contain(func() error { return c.SetDeadline(t.deadline) })
	if _, panicked := err.(*panicError); panicked {
		_ = t.contain(c.Close)
	}
}

// exchange puts other connections to the same ends in the place of those that the tunnel
// has had. Somebody may be closing it already.
func (t *Tunnel) exchange(client, target net.Conn) {
	t.up.mu.Lock() // before t.mu, as where a direction bounds its writes
	t.down.mu.Lock()
	t.mu.Lock()
	t.client, t.target = client, target
	if t.fixed {
		_ = client.SetDeadline(t.deadline)
		_ = target.SetDeadline(t.deadline)
	}
	t.mu.Unlock()
	t.up.unlock()
	t.down.unlock()
}
