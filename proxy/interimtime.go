package proxy

import (
	"sync/atomic"
	"time"
)

// interimTime is the time that an attempt's client takes to accept interim responses. It is safe for concurrent use.
type interimTime struct {
	whole    atomic.Int64 // nanoseconds in which the target's final response was not waited for
	from, to atomic.Int64 // the last write's, or that of all that were queued up to it; Unix time in nanoseconds
}

// clear begins another attempt.
func (t *interimTime) clear() {
	t.whole.Store(0)
	t.from.Store(0)
	t.to.Store(0)
}

// add counts a write that began at from and ends now, and that the target's final response has waited for.
func (t *interimTime) add(from time.Time) {
	t.whole.Add(int64(time.Since(from)))
	t.note(from)
}

// note notes writes that began at from, the last of which ends now, while the target's final response was waited for.
func (t *interimTime) note(from time.Time) {
	t.from.Store(from.UnixNano())
	t.to.Store(time.Now().UnixNano())
}

// spent returns how long the writes took that add has counted.
func (t *interimTime) spent() time.Duration { return time.Duration(t.whole.Load()) }

// covers reports whether the last write was under way at a time.
func (t *interimTime) covers(at time.Time) bool {
	return t.from.Load() <= at.UnixNano() && at.UnixNano() <= t.to.Load()
}
