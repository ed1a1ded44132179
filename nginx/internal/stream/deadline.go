package stream

import (
	"sync"
	"time"
)

// deadline is the deadline of reads of a PacketConn.
type deadline struct {
	mu    sync.Mutex
	timer *time.Timer
	over  chan struct{} // closed when it has passed
}

func newDeadline() *deadline { return &deadline{over: make(chan struct{})} }

// passed returns a channel that is closed when the deadline that is set has passed.
func (d *deadline) passed() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.over
}

// set sets the deadline; the zero Time is none. A Read that waits does so until the former one.
func (d *deadline) set(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	select {
	case <-d.over:
		d.over = make(chan struct{})
	default:
	}
	over := d.over
	switch {
	case t.IsZero():
	case time.Until(t) <= 0:
		close(over)
	default:
		d.timer = time.AfterFunc(time.Until(t), func() {
			d.mu.Lock()
			defer d.mu.Unlock()
			if d.over == over {
				select {
				case <-over:
				default:
					close(over)
				}
			}
		})
	}
}
