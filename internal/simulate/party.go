package simulate

import (
	"sync"
	"time"
)

// party is the reader or the writer at an end of a connection: its deadline, and its calls
// that wait. The half's mutex guards it.
type party struct {
	deadline time.Time
	waiting  []*waiter
	idle     []*waiter
}

// waiter is one call that waits.
type waiter struct {
	wake  chan struct{}
	timer *time.Timer
	until time.Time // when the timer fires; zero: never
}

// over reports whether the deadline has passed.
func (p *party) over(now time.Time) bool {
	return !p.deadline.IsZero() && !p.deadline.After(now)
}

// wait waits until wake is called, the deadline passes, or the time at if it is not zero. It
// unlocks mu meanwhile.
func (p *party) wait(mu *sync.Mutex, until time.Time) {
	if until.IsZero() || !p.deadline.IsZero() && p.deadline.Before(until) {
		until = p.deadline
	}
	w := p.waiter()
	p.waiting = append(p.waiting, w)
	w.until = time.Time{}
	if !until.IsZero() {
		w.sleepUntil(until)
	}
	mu.Unlock()
	select {
	case <-w.wake:
	case <-w.timer.C:
	}
	mu.Lock()
	w.timer.Stop()
	p.leave(w)
}

// waiter returns a waiter that is not in use.
func (p *party) waiter() *waiter {
	if n := len(p.idle); n > 0 {
		w := p.idle[n-1]
		p.idle = p.idle[:n-1]
		return w
	}
	w := &waiter{wake: make(chan struct{}, 1), timer: time.NewTimer(time.Hour)}
	w.timer.Stop()
	return w
}

// sleepUntil makes w wake up at a time.
func (w *waiter) sleepUntil(t time.Time) {
	w.until = t
	w.timer.Reset(time.Until(t))
}

// leave ends w's waiting.
func (p *party) leave(w *waiter) {
	for i := range p.waiting {
		if p.waiting[i] == w {
			p.waiting = append(p.waiting[:i], p.waiting[i+1:]...)
			break
		}
	}
	select {
	case <-w.wake:
	default:
	}
	p.idle = append(p.idle, w)
}

// wake wakes all waiting calls.
func (p *party) wake() {
	for _, w := range p.waiting {
		select {
		case w.wake <- struct{}{}:
		default:
		}
	}
}

// wakeAt wakes all waiting calls at a time.
func (p *party) wakeAt(t time.Time) {
	for _, w := range p.waiting {
		if w.until.IsZero() || t.Before(w.until) {
			w.sleepUntil(t)
		}
	}
}

// setDeadline moves the deadline of a party of h's.
func (h *half) setDeadline(p *party, t time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p.deadline = t
	switch {
	case t.IsZero(): // a call that wakes up for the previous deadline waits again
	case p.over(time.Now()):
		p.wake()
	default:
		p.wakeAt(t)
	}
}
