package server

import (
	"context"
	"sync"
	"time"

	"github.com/culvert-go/culvert/internal/deadline"
)

// watch is a read that notices when the client leaves. It runs while a handler does, if that waits for the end of its
// context, and once the request's body was read to its end. What it reads is one byte of the next request.
type watch struct {
	running  bool
	stopping bool
	ended    sync.Cond // signalled when it runs no more
	one      [1]byte
	hasByte  bool // one was read, and comes before all that is read later
}

// startWatching starts the watch for x. The caller holds c.mu.
func (c *conn) startWatching(x *exchange) {
	if c.current != x || c.hijacked || c.watch.running || c.watch.hasByte {
		return
	}
	c.watch.running = true
	if !c.readSet.IsZero() {
		c.readSet = time.Time{}
		_ = c.rwc.SetReadDeadline(time.Time{})
	}
	go c.watchClient(x)
}

func (c *conn) watchClient(x *exchange) {
	n, err := c.rwc.Read(c.watch.one[:])
	c.mu.Lock()
	c.watch.hasByte = n > 0
	c.watch.running = false
	left := n == 0 && err != nil && !(c.watch.stopping && timedOut(err))
	c.watch.ended.Broadcast()
	c.mu.Unlock()
	if left {
		x.ctx.cancel(context.Canceled)
	}
}

// stopWatching ends the watch, and waits until it has.
func (c *conn) stopWatching() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.watch.running {
		return
	}
	c.watch.stopping = true
	c.readSet = deadline.Past
	_ = c.rwc.SetReadDeadline(deadline.Past)
	for c.watch.running {
		c.watch.ended.Wait()
	}
	c.watch.stopping = false
}
