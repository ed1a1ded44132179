package wsupgrade

import (
	"sync"
	"time"
)

// limits are the times of a tunnel; 0 means no bound.
type limits struct {
	idle     time.Duration // without a byte from either side
	lifetime time.Duration
	ping     time.Duration // without a byte from one side until it is asked
}

// watcher looks at a tunnel's times. One timer does for all of them, and bytes
// don't touch it: it looks when the next of the times may be over.
type watcher struct {
	t     *Tunnel
	mu    sync.Mutex
	timer *time.Timer
	over  bool
}

// watch looks at the tunnel's times until stop is called.
func (t *Tunnel) watch() (stop func()) {
	if *t.limits == (limits{}) {
		return func() {}
	}
	w := &watcher{t: t}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer = time.AfterFunc(t.look(), w.look)
	return w.stop
}

func (w *watcher) look() {
	next := w.t.look()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.over && next > 0 {
		w.timer.Reset(next)
	}
}

func (w *watcher) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	w.timer.Stop()
}

// look does what it is time for, and returns when to look again; 0 means never.
func (t *Tunnel) look() time.Duration {
	now := time.Since(t.Start)
	next := alarm{now: now}
	up, down := t.up.lastRead(), t.down.lastRead()
	switch l := t.limits; {
	case l.lifetime > 0 && !next.at(0, l.lifetime):
		t.Close(GoingAway, "maximum lifetime")
		return 0
	case l.idle > 0 && !next.at(max(up, down), l.idle):
		t.Close(GoingAway, "idle")
		return 0
	case l.ping > 0 && t.up.codec != nil && !(t.alive(&t.up, &next) && t.alive(&t.down, &next)):
		t.Close(GoingAway, "no answer to a ping")
		return 0
	}
	return next.in
}

// alarm is the earliest of some times.
type alarm struct{ now, in time.Duration }

// at sets the alarm to a time after from, and returns false if that is over. The longest time there is does not overflow.
func (a *alarm) at(from, after time.Duration) bool {
	in := after - (a.now - from)
	if in <= 0 {
		return false
	}
	if a.in == 0 || in < a.in {
		a.in = in
	}
	return true
}
