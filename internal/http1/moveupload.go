package http1

import (
	"io"
	"net"

	"github.com/culvert-go/culvert/internal/clientbody"
)

// Source is a request's body that the kernel can move from the client's socket to a target's. A read of it returns what
// Move does not move.
type Source interface {
	// Move waits for the client as Read does, and has to take what was received, most bytes at most. It moves nothing, and
	// returns 0 without an error, where a Read has to be made: bytes were read ahead, the body has ended or failed, or it
	// must be seen. The error is one of to.
	Move(to clientbody.Taker, most int64) (n int64, err error)
}

// Available waits until something was received and returns how much, 0 at the end. The read deadline bounds the wait.
func (p *Peeker) Available() (int64, error) { return p.available() }

// Took notes n bytes of a body of known length that were taken from the connection beside Read.
func (b *Content) Took(n int64) {
	if b.left -= n; b.left == 0 {
		b.err = io.EOF
	}
}

// MostMovable returns how much of the body the kernel may move at once: 0 where its length is not known.
func (b *Content) MostMovable() int64 {
	if b.chunked || b.err != nil || b.left <= 0 || b.r.Buffered() > 0 {
		return 0
	}
	return min(b.left, maxPiece)
}

// movable returns the body if the kernel may move it to the connection.
func (u *upload) movable() Source {
	source, ok := u.request.Body.(Source)
	if !ok || u.framing.chunked || u.framing.length < MoveFrom || !canMove || u.conn.Raw() == nil || !spliceAllowed() {
		return nil
	}
	return source
}

// lastOf is the clientbody.Taker of an upload of which left bytes remain.
type lastOf struct {
	u    *upload
	left int64
}

// Take implements clientbody.Taker.
func (t lastOf) Take(src *net.TCPConn, n int64) (int64, error) {
	if n == t.left {
		t.u.startLast()
	}
	return t.u.conn.take(src, n)
}

// take moves n bytes that src has received to the connection, within the pool's WriteTimeout.
func (c *Conn) take(src *net.TCPConn, n int64) (int64, error) {
	if d := c.pool.o.WriteTimeout; d > 0 {
		c.extendWrite(d)
	}
	piece := &io.LimitedReader{R: src, N: n}
	var from io.Reader = piece
	if n == 1 {
		from = struct{ io.Reader }{piece} // see Body.Move
	}
	moved, err := c.Raw().ReadFrom(from)
	c.sent.Add(moved)
	if err == nil && moved < n {
		err = io.ErrUnexpectedEOF // the client's socket was read by another
	}
	if err != nil {
		c.writeFailed.Store(true)
	}
	return moved, err
}
