package simulate

import (
	"sync"
	"testing"
	"time"
)

const (
	beat    = 20 * time.Millisecond
	tooLate = 100 * time.Millisecond // slack is twenty times as long, and a quiet machine wakes a process within 40 ms
)

// lateness knows when this process was last woken too late. In a history in real time that saw such a moment the time went
// to the machine, and says nothing about the gateway.
type lateness struct {
	mu    sync.Mutex
	woken time.Time // by the last beat
	last  time.Time // when it was too late
	worst time.Duration
}

// watchLateness watches until the test ends.
func watchLateness(t *testing.T) *lateness {
	l := &lateness{woken: time.Now()}
	end, ended := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { close(end); <-ended })
	go func() {
		defer close(ended)
		for {
			select {
			case <-end:
				return
			case <-time.After(beat):
				l.wake(time.Now())
			}
		}
	}()
	return l
}

// wake records that a beat woke the process.
func (l *lateness) wake(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	late := now.Sub(l.woken) - beat
	if late > tooLate {
		l.last = now
	}
	l.woken, l.worst = now, max(l.worst, late)
}

// since reports whether the process was woken too late at some time since begun, or is late now.
func (l *lateness) since(begun time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last.After(begun) || time.Since(l.woken)-beat > tooLate
}

// most returns how late the process was woken at most.
func (l *lateness) most() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.worst
}

func TestLateness(t *testing.T) {
	begun := time.Now()
	for name, want := range map[string]struct {
		beats []time.Duration // since begun
		late  bool
	}{
		"in time":               {[]time.Duration{beat, 2 * beat, 3*beat + tooLate/2}, false},
		"too late":              {[]time.Duration{beat, 2*beat + 2*tooLate, 3*beat + 2*tooLate}, true},
		"late before it began":  {[]time.Duration{-beat, -beat / 2}, false},
		"no beat for long past": {[]time.Duration{-beat - 2*tooLate}, true},
	} {
		t.Run(name, func(t *testing.T) {
			l := &lateness{woken: begun}
			if want.beats[0] < 0 {
				l.woken = begun.Add(-time.Hour)
			}
			for _, b := range want.beats {
				l.wake(begun.Add(b))
			}
			if want.beats[0] > 0 {
				l.woken = time.Now() // the last beat was just now
			}
			if l.since(begun) != want.late {
				t.Errorf("since: %v, want %v", !want.late, want.late)
			}
		})
	}
}
