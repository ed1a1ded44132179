package proxy

import (
	"context"
	"sync"
	"time"
)

// headerTimer cancels an exchange whose target keeps the head of its answer
// back. While the client is the one who is waited for, it stands still.
type headerTimer struct {
	mu      sync.Mutex
	after   time.Duration
	timer   *time.Timer // nil: no bound
	stopped bool
}

// start sets the timer for the first time; after 0 means no bound.
func (t *headerTimer) start(after time.Duration, cancel context.CancelCauseFunc) {
	if after > 0 {
		t.after = after
		t.timer = time.AfterFunc(after, func() { cancel(errHeaderTimeout) })
	}
}

func (t *headerTimer) pause() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.timer != nil {
		t.timer.Stop()
	}
}

func (t *headerTimer) resume() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.timer != nil && !t.stopped {
		t.timer.Reset(t.after)
	}
}

// stop ends the timer for good; a body that is still being sent afterwards does
// not start it again.
func (t *headerTimer) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopped = true
	if t.timer != nil {
		t.timer.Stop()
	}
}
