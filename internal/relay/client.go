package relay

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/culvert-go/culvert/internal/clientside"
	"github.com/culvert-go/culvert/internal/deadline"
)

// client writes a body to the client within the timeouts. The deadline of the request's context bounds a write, too: a
// write that waits for the client then fails, and counts as the client's failure.
type client struct {
	side    *clientside.Handle
	writes  deadline.Deadline
	end     time.Time // the request's deadline, zero for none; without one the fields below are not set
	begun   time.Time
	offered time.Time     // when the write of the last piece began
	taken   time.Time     // when the client had accepted the last piece
	used    time.Duration // how long the client took to accept all pieces
}

func (c *client) start(side *clientside.Handle, r *http.Request, timeout time.Duration) {
	c.side = side
	c.writes.StartWrites(side, r, timeout)
	if end, ok := r.Context().Deadline(); ok {
		c.end, c.begun = end, time.Now()
		c.writes.Change(timeout, end.Add(lastWrite))
	}
	c.writes.PassOn()
}

func (c *client) write(p []byte) error {
	c.writes.Begin()
	defer c.writes.End()
	n, err := c.side.Writer().Write(p)
	if err == nil && n < len(p) { // a wrapper that breaks io.Writer's contract
		err = io.ErrShortWrite
	}
	return err
}

func (c *client) flush() error {
	c.writes.Begin()
	defer c.writes.End()
	return flush(c.side)
}

// offer records that a piece is about to be written: the exchange waits for the client.
func (c *client) offer() {
	if !c.end.IsZero() {
		c.offered = time.Now()
	}
}

// accepted records that the client has accepted a piece: the exchange waits for the target.
func (c *client) accepted() {
	if !c.end.IsZero() {
		c.taken = time.Now()
		c.used += c.taken.Sub(c.offered)
	}
}

// lastWrite is how long after the request's deadline what was received before it may be written. A write deadline
// that has passed cuts what net/http buffers of an HTTP/1 response, and no write returns an error for that.
const lastWrite = 100 * time.Millisecond

// leastWait is how long the exchange must have waited for the next piece of a body before the end of its
// time counts as the target's failure.
const leastWait = 10 * time.Millisecond

// readFailed returns the error of a body that could not be read. If the time ended just after the client
// had accepted a piece, or the client had used half of it, the client is to blame: a target that is read
// a moment before the end, and has responded at once each time, has not used up the time.
func (c *client) readFailed(ctx context.Context, err error) error {
	if ctx.Err() != nil && (c.taken.After(c.end.Add(-leastWait)) || c.usedMost()) {
		return clientGone(err)
	}
	return bodyBroken(ctx, err)
}

func (c *client) usedMost() bool {
	return !c.end.IsZero() && 2*c.used >= c.end.Sub(c.begun)
}
