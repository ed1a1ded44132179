package stream

import (
	"sync/atomic"
	"time"
)

// attempt is one server that a session was sent to, or could not be sent to.
type attempt struct {
	addr    string
	began   time.Time
	connect atomic.Int64 // until the connection was made, in nanoseconds; unknown before
	first   atomic.Int64 // until the first byte
	total   atomic.Int64

	received, sent atomic.Int64

	ended func(Times) // of Upstream.Observe
}

// unknown is a time that is not known yet.
const unknown = -1

func newAttempt(addr string) *attempt {
	a := &attempt{addr: addr, began: time.Now()}
	a.connect.Store(unknown)
	a.first.Store(unknown)
	a.total.Store(unknown)
	return a
}

// mark sets one of the times, if it is not known yet.
func (a *attempt) mark(at *atomic.Int64) { at.CompareAndSwap(unknown, int64(time.Since(a.began))) }

func (a *attempt) finish() { a.mark(&a.total) }

// observed reports the end of the attempt. A further call does nothing.
func (a *attempt) observed(failed bool) {
	if ended := a.ended; ended != nil {
		a.ended = nil
		ended(Times{time.Duration(a.connect.Load()), time.Duration(a.first.Load()), time.Duration(a.total.Load()), failed})
	}
}
