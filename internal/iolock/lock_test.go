package iolock_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/internal/iolock"
)

// Only one goroutine at a time holds a Lock.
func TestExcludes(t *testing.T) {
	var l iolock.Lock
	var wg sync.WaitGroup
	n := 0
	for range 20 {
		wg.Go(func() {
			for range 200 {
				l.Lock()
				n++
				l.Unlock()
			}
		})
	}
	wg.Wait()
	if n != 4000 {
		t.Errorf("%d, want 4000", n)
	}
}

// Virtual time advances while a goroutine waits for the lock.
func TestTimePassesMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l iolock.Lock
		l.Lock()
		go func() {
			time.Sleep(time.Hour)
			l.Unlock()
		}()
		l.Lock()
	})
}

// TestTryLock: TryLock does not wait for a lock that is held.
func TestTryLock(t *testing.T) {
	var l iolock.Lock
	if !l.TryLock() || l.TryLock() {
		t.Error("TryLock failed on an unlocked lock, or succeeded on a locked one")
	}
	l.Unlock()
	if !l.TryLock() {
		t.Error("TryLock failed after Unlock")
	}
}
