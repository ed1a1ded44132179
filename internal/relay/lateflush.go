package relay

import (
	"time"

	"github.com/culvert-go/culvert/internal/iolock"
	"github.com/culvert-go/culvert/internal/response"
)

// lateFlush flushes an interval after a write, so that many small writes share one flush.
type lateFlush struct {
	interval time.Duration
	lock     iolock.Lock // guards the fields below; held while a write waits for the client
	client   client
	timer    *time.Timer
	due      bool
	stopped  bool
	err      error // of a flush on the timer's goroutine
	panicked any   // the value of a hook's panic in such a flush
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

// panicAgain repeats a hook's panic on the timer's goroutine on that of the handler, where net/http and filters.Recover
// recover from it. On the timer's it would end the process. It is called with the lock held.
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

// discards reports whether the writer discards the rest of the body.
func (l *lateFlush) discards() bool {
	l.lock.Lock() // a flush may be under way
	defer l.lock.Unlock()
	return response.Discards(l.client.side.Writer())
}

// stop stops the timer; the writer is not used afterwards. It panics if the last flush did, and returns the error of that flush.
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
