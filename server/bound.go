package server

import (
	"time"

	"github.com/culvert-go/culvert/internal/deadline"
)

// bound is the deadline of a connection's reads, or of its writes. The socket gets it when it is used next, since most are
// changed before that. The connection's mu guards it.
type bound struct {
	until   time.Time // zero: none
	failing bool      // what is under way, and what comes, fails at once
	set     time.Time // what the socket has
}

// change returns the deadline that the socket is to have. It reports false if the socket has that.
func (b *bound) change() (until time.Time, changed bool) {
	until = b.until
	if b.failing {
		until = deadline.Past
	}
	changed = !until.Equal(b.set)
	b.set = until
	return until, changed
}

// boundReads sets the deadline of reads that are made from now on; the zero time is none.
func (c *conn) boundReads(until time.Time) {
	c.mu.Lock()
	c.reads.until = until
	c.mu.Unlock()
}

// applyReadDeadline sets the socket's deadline if it has another one. The caller holds c.mu.
func (c *conn) applyReadDeadline() {
	if until, changed := c.reads.change(); changed {
		_ = c.rwc.SetReadDeadline(until)
	}
}

// boundWrite sets the socket's deadline before a write.
func (c *conn) boundWrite() {
	c.mu.Lock()
	_ = c.applyWriteDeadline()
	c.mu.Unlock()
}

// applyWriteDeadline is applyReadDeadline for writes.
func (c *conn) applyWriteDeadline() error {
	if until, changed := c.writes.change(); changed {
		return c.rwc.SetWriteDeadline(until)
	}
	return nil
}
