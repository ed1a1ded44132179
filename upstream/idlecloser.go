package upstream

import (
	"sync"
	"time"
)

// idleCloser closes connections that become idle soon: net/http forgets a stream of HTTP/2 a moment behind the end of its
// exchange, and keeps its connection until IdleConnTimeout if idle ones were closed in between. It is safe for concurrent use.
type idleCloser struct {
	close func() // closes those that are idle now

	mu    sync.Mutex
	timer *time.Timer
	next  time.Duration // until the timer's next call
}

// The first and the last time until idle connections are looked for again.
const (
	soonIdle = time.Millisecond
	lateIdle = 5 * time.Second
)

// start closes what is idle now, and what becomes so within seconds.
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
