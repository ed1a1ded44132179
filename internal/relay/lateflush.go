package relay

import (
	"time"

	"github.com/culvert-go/culvert/internal/iolock"
)

// lateFlush flushes what was written after an interval, so that many small
// writes share one flush.
type lateFlush struct {
	interval time.Duration
	lock     iolock.Lock // guards what follows; held while a write waits for the client
	client   client
	timer    *time.Timer
	due      bool
	stopped  bool
	err      error // of a flush on the timer's goroutine
	panicked any   // what a hook's panic in such a flush was called with
}

func newLateFlush(interval time.Duration) *lateFlush {
	return &lateFlush{interval: interval}
}

func (l *lateFlush) write(p []byte) error {
	l.lock.Lock()
	defer l.lock.Unlock()
	l.panicAgain()
	if l.err != nil {
		return l.err
	}
	if err := l.client.write(p); err != nil {
		return err
	}
	if !l.due {
		l.due = true
		if l.timer == nil {
			l.timer = time.AfterFunc(l.interval, l.passed)
		} else {
			l.timer.Reset(l.interval)
		}
	}
	return nil
}

func (l *lateFlush) passed() {
	l.lock.Lock()
	defer l.lock.Unlock()
	if l.due && !l.stopped {
		l.due = false
		defer func() { l.panicked = recover() }()
		l.err = l.client.flush()
	}
}

// panicAgain panics on the handler's goroutine where a hook has panicked on the timer's: net/http and filters.Recover
// bear it there, and it would end the process here. It is called with the lock held.
func (l *lateFlush) panicAgain() {
	if v := l.panicked; v != nil {
		l.panicked = nil
		panic(v)
	}
}

func (l *lateFlush) flush() error {
	l.lock.Lock()
	defer l.lock.Unlock()
	l.panicAgain()
	l.due = false
	return l.client.flush()
}

// stop ends the timer; the writer is not touched afterwards. It panics where the last flush did, and returns the error of that.
func (l *lateFlush) stop() error {
	l.lock.Lock()
	defer l.lock.Unlock()
	l.stopped = true
	if l.timer != nil {
		l.timer.Stop()
	}
	l.panicAgain()
	return l.err
}
