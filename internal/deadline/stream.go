package deadline

import (
	"sync"
	"time"
)

// stream calls expire when an operation on an HTTP/2 stream has taken too long.
type stream struct {
	expire func()

	mu    sync.Mutex
	until time.Time   // when the operation that is under way must end; zero if none is, or if it has no bound
	timer *time.Timer // nil before the first bound
	at    time.Time   // when timer fires, zero if it is not running
}

// setUntil begins an operation that must end at until; the zero time ends an operation. The timer is left running for
// the next operation: to stop it each time is much more expensive.
func (s *stream) setUntil(until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.until = until
	s.arm()
}

// arm makes the timer fire at s.until or earlier. The caller holds s.mu.
func (s *stream) arm() {
	if s.until.IsZero() || !s.at.IsZero() && !s.at.After(s.until) {
		return
	}
	s.at = s.until
	if s.timer == nil {
		s.timer = time.AfterFunc(time.Until(s.at), s.onTimer)
	} else {
		s.timer.Reset(time.Until(s.at))
	}
}

// onTimer calls expire if the operation that is under way has exceeded its time.
func (s *stream) onTimer() {
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
