package server

import (
	"context"
	"sync"
	"time"

	"github.com/culvert-go/culvert/internal/deadline"
)

// watch is a read that notices when the client leaves. It runs while a handler does, if that waits for the end of its
// context, and once the request's body was read to its end, or is short and the handler may not read it any more. Then the
// watch reads it ahead. After it the watch reads one byte of the next request.
type watch struct {
	running  bool
	stopping bool
	hasByte  bool // one was read, and comes before all that is read later
	one      [1]byte
	ended    *sync.Cond // of the connection's mu, signalled when it runs no more; nil before the first
}

// startWatching starts the watch for x. The caller holds c.mu.
func (c *conn) startWatching(x *exchange) {
	if c.current != x || c.hijacked || c.watch.running || c.watch.hasByte {
		return
	}
	ahead := !x.body.ended.Load()
	if ahead && !x.body.lockAhead() {
		return
	}
	if c.watch.ended == nil {
		c.watch.ended = sync.NewCond(&c.mu)
	}
	c.watch.running = true
	go c.watchClient(x, ahead)
}

func (c *conn) watchClient(x *exchange, ahead bool) {
	whole := !ahead || x.body.readAhead()
	if !c.awaitsByte(whole) {
		return
	}
	n, err := c.rwc.Read(c.watch.one[:])
	c.mu.Lock()
	c.watch.hasByte = n > 0
	left := n == 0 && err != nil && !(c.watch.stopping && timedOut(err))
	c.watch.end()
	c.mu.Unlock()
	if left {
		x.ctx.cancel(context.Canceled)
	}
}

// awaitsByte prepares the read of one byte, for which there is no deadline: the client may take any time to leave. It
// reports false if the watch ends before that.
func (c *conn) awaitsByte(whole bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !whole || c.watch.stopping {
		c.watch.end()
		return false
	}
	if !c.reads.set.IsZero() {
		c.reads.set = time.Time{}
		_ = c.rwc.SetReadDeadline(time.Time{})
	}
	return true
}

// end notes that the watch has ended. The caller holds the connection's mu.
func (w *watch) end() {
	w.running = false
	w.ended.Broadcast()
}

// stopWatching ends the watch, and waits until it has.
func (c *conn) stopWatching() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopWatchingLocked()
}

// stopWatchingLocked is stopWatching for a caller that holds c.mu. It is not held meanwhile.
func (c *conn) stopWatchingLocked() {
	for c.watch.running {
		c.watch.stopping, c.reads.failing = true, true
		c.reads.set = deadline.Past
		_ = c.rwc.SetReadDeadline(deadline.Past)
		c.watch.ended.Wait()
		c.watch.stopping, c.reads.failing = false, false
	}
}
