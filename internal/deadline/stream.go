package deadline

import (
	"sync"
	"time"
)

// stream calls expire when an operation on an HTTP/2 stream has taken too long.
type stream struct {
	expire func()

	mu    sync.Mutex
	until time.Time   // when the operation that is under way must have ended; zero if none is, or for no bound
	timer *time.Timer // nil before the first bound
	at    time.Time   // when timer fires, zero if it does not run
}

// begin begins an operation, or ends one: the timer is left running for the next, which is much cheaper than to
// stop it each time.
func (s *stream) begin(until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.until = until
	s.arm()
}

// arm has the timer fire at until, or before. The caller holds s.mu.
func (s *stream) arm() {
	if s.until.IsZero() || !s.at.IsZero() && !s.at.After(s.until) {
		return
	}
	s.at = s.until
	if s.timer == nil {
		s.timer = time.AfterFunc(time.Until(s.at), s.passed)
	} else {
		s.timer.Reset(time.Until(s.at))
	}
}

func (s *stream) passed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at = time.Time{}
	switch {
	case s.until.IsZero():
	case time.Now().Before(s.until):
		s.arm()
	default:
		s.expire()
	}
}

func (s *stream) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.until = time.Time{}
	if s.timer != nil {
		s.timer.Stop()
	}
}
