package relay

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/culvert-go/culvert/internal/deadline"
)

// client takes a body, in the time that there is. The end of the request's time bounds a write, too: one that waits
// for the client fails then, and the client has been too slow.
type client struct {
	w       http.ResponseWriter
	writes  deadline.Deadline
	end     time.Time // of the request's time, zero for none: what follows is kept only where there is an end
	begun   time.Time
	offered time.Time     // when the last piece was offered to the client
	taken   time.Time     // when the client had accepted the last piece
	used    time.Duration // what the client took to accept all of them
}

func (c *client) start(w http.ResponseWriter, r *http.Request, timeout time.Duration) {
	c.w = w
	c.writes.StartWrites(w, r, timeout)
	if end, ok := r.Context().Deadline(); ok {
		c.end, c.begun = end, time.Now()
		c.writes.Change(timeout, end.Add(lastWrite))
	}
	c.writes.PassOn()
}

func (c *client) write(p []byte) error {
	c.writes.Begin()
	defer c.writes.End()
	n, err := c.w.Write(p)
	if err == nil && n < len(p) { // a wrapper that breaks io.Writer's contract
		err = io.ErrShortWrite
	}
	return err
}

func (c *client) flush() error {
	c.writes.Begin()
	defer c.writes.End()
	return flush(c.w)
}

// offer notes that the client is given a piece: from now on it is waited for.
func (c *client) offer() {
	if !c.end.IsZero() {
		c.offered = time.Now()
	}
}

// accepted notes that the client has accepted a piece: from now on the target is waited for.
func (c *client) accepted() {
	if !c.end.IsZero() {
		c.taken = time.Now()
		c.used += c.taken.Sub(c.offered)
	}
}

// lastWrite is how long after the end of the request's time what has been received in time may be written. A
// deadline that has passed cuts what stands in net/http's buffer of an HTTP/1 response: no write would be told of it.
const lastWrite = 100 * time.Millisecond

// leastWait is the time that a target is given for the next piece of a body before the end of the
// exchange's time is its failure.
const leastWait = 10 * time.Millisecond

// readFailed is the error of a body that could not be read. Where the time ran out as soon as the
// client had accepted a piece, or the client had used half of it, the client was waited for: a target
// that is read a moment before the end, and responds at once each time, has not spent the time.
func (c *client) readFailed(ctx context.Context, err error) error {
	if ctx.Err() != nil && (c.taken.After(c.end.Add(-leastWait)) || c.usedMost()) {
		return clientGone(err)
	}
	return bodyBroken(ctx, err)
}

func (c *client) usedMost() bool {
	return !c.end.IsZero() && 2*c.used >= c.end.Sub(c.begun)
}
