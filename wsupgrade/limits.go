package wsupgrade

import (
	"sync"
	"time"
)

// limits are the times of a tunnel; 0 means no bound.
type limits struct {
	idle     time.Duration // without a byte from either side, Pongs aside
	lifetime time.Duration
	ping     time.Duration // without a byte from one side until it is sent a ping
}

// watcher enforces a tunnel's limits. One timer serves all of them, and bytes don't touch it: it
// fires when the next limit may be reached.
type watcher struct {
	t       *Tunnel
	mu      sync.Mutex
	timer   *time.Timer
	stopped bool
}

// watchLimits enforces the tunnel's limits until stop is called.
func (t *Tunnel) watchLimits() (stop func()) {
	if *t.limits == (limits{}) {
		return func() {}
	}
	w := &watcher{t: t}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer = time.AfterFunc(t.enforceLimits(), w.check)
	return w.stop
}

func (w *watcher) check() {
	next := w.t.enforceLimits()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.stopped && next > 0 {
		w.timer.Reset(next)
	}
}

func (w *watcher) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
	w.timer.Stop()
}

// enforceLimits closes the tunnel if a limit is reached, sends the pings that are due, and returns
// when to call it again; 0 means never.
func (t *Tunnel) enforceLimits() time.Duration {
	now := time.Since(t.Start)
	next := alarm{now: now}
	used := time.Duration(max(t.up.lastUse.Load(), t.down.lastUse.Load()))
	switch l := t.limits; {
	case l.lifetime > 0 && !next.at(0, l.lifetime):
		t.Close(GoingAway, "maximum lifetime")
		return 0
	case l.idle > 0 && !next.at(used, l.idle):
		t.Close(GoingAway, "idle")
		return 0
	case l.ping > 0 && t.up.codec != nil && !(t.pingIfSilent(&t.up, &next) && t.pingIfSilent(&t.down, &next)):
		t.Close(GoingAway, "no response to a ping")
		return 0
	}
	return next.in
}

// alarm is the earliest of several times.
type alarm struct{ now, in time.Duration }

// at sets the alarm to the time after from if that is earlier, and returns false if it has passed.
// The longest Duration does not overflow.
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
