package simulate

import "time"

// deadline is that of a half's reads or writes.
type deadline struct {
	over  bool
	timer *time.Timer
}

// set moves d, which is one of h's.
func (h *half) setDeadline(d *deadline, t time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	d.over = !t.IsZero() && !t.After(time.Now())
	if !t.IsZero() && !d.over {
		var timer *time.Timer
		timer = time.AfterFunc(time.Until(t), func() {
			h.mu.Lock()
			defer h.mu.Unlock()
			if d.timer == timer {
				d.over = true
				h.changed.Broadcast()
			}
		})
		d.timer = timer
	}
	h.changed.Broadcast()
}

// stop ends the timer: a closed connection leaves nothing behind. The caller holds the
// half's mutex.
func (d *deadline) stop() {
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
}
