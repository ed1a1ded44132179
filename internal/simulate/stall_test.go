package simulate

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// mostSeconds is how long a history may take. Most take milliseconds.
const mostSeconds = 60

// stoodStill is the rule that a longer history breaks.
const stoodStill = "stood still"

// stallWatch calls a function when a history has run for some seconds in which this process ran, too. A single timer would
// also fire for a process that was stopped, or whose machine was, and end a run without cause.
type stallWatch struct {
	mu    sync.Mutex
	timer *time.Timer
	left  int // seconds
}

// watchStall begins to watch.
func watchStall(seconds int, stalled func()) *stallWatch {
	w := &stallWatch{left: seconds}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer = time.AfterFunc(time.Second, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.left--; w.left == 0 {
			stalled()
		} else if w.left > 0 {
			w.timer.Reset(time.Second)
		}
	})
	return w
}

// stop ends the watch.
func (w *stallWatch) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.left = 0
	w.timer.Stop()
}

// inBubble runs a history in a bubble. A history in which time does not pass is abandoned with its goroutines. Its journal is
// lost, since they may hold the journal's mutex.
func inBubble(t *testing.T, seconds int, run func(*Journal)) *Journal {
	j := NewJournal()
	ended, stalled := make(chan struct{}), make(chan struct{})
	watch := watchStall(seconds, func() { close(stalled) })
	defer watch.stop()
	go func() {
		defer close(ended)
		runBubble(t, j, run)
	}()
	select {
	case <-ended:
		return j
	case <-stalled:
	}
	given := NewJournal()
	given.start = time.Now()
	given.Break(stoodStill, "no end: time does not pass where a goroutine waits for a mutex whose holder waits for time\n%s", everything())
	return given
}

// runBubble runs a history in a bubble, and finds what it leaves behind.
func runBubble(t *testing.T, j *Journal, run func(*Journal)) {
	defer func() {
		if v := recover(); v != nil {
			j.broken = append(j.broken, Broken{"held", fmt.Sprintf("%v\n%s", v, everything())})
		}
	}()
	synctest.Test(t, func(*testing.T) {
		if *stacks > 0 {
			time.AfterFunc(*stacks, func() { fmt.Println(everything()) })
		}
		began := runtime.NumGoroutine()
		run(j)
		synctest.Wait()
		if stacks := left(began); stacks != "" {
			j.Break("left", "goroutines:\n%s", stacks)
		}
	})
}

// A history that stands still breaks a rule, and the next one runs.
func TestHistoryThatStandsStill(t *testing.T) {
	j := inBubble(t, 1, func(*Journal) {
		var mu sync.Mutex
		mu.Lock()
		go func() {
			time.Sleep(time.Second)
			mu.Unlock()
		}()
		mu.Lock() // for which time does not pass (testing/synctest)
	})
	if len(j.broken) != 1 || j.broken[0].Rule != stoodStill {
		t.Errorf("broken rules %v", j.broken)
	}
	if j := inBubble(t, mostSeconds, func(*Journal) { time.Sleep(time.Hour) }); len(j.broken) != 0 {
		t.Errorf("broken rules %v", j.broken)
	}
}
