package upstream

import (
	"sync"
	"time"
)

// idleCloser closes idle connections, and those that become idle within seconds. net/http removes a
// stream of HTTP/2 a moment after the end of its exchange; if idle connections are closed in between,
// it keeps that one until IdleConnTimeout. An idleCloser is safe for concurrent use.
type idleCloser struct {
	close func() // closes those that are idle now

	mu    sync.Mutex
	timer *time.Timer
	next  time.Duration // until the timer's next call
}

// The first and the longest delay until idle connections are closed again.
const (
	soonIdle = time.Millisecond
	lateIdle = 5 * time.Second
)

// start closes the connections that are idle now, and those that become idle within seconds.
func (c *idleCloser) start() {
	c.mu.Lock()
	if c.timer != nil {
		c.timer.Stop()
	}
	c.next = soonIdle
	c.mu.Unlock()
	c.run()
}

func (c *idleCloser) run() {
	c.close()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next <= lateIdle {
		c.timer = time.AfterFunc(c.next, c.run)
		c.next *= 5
	}
}
