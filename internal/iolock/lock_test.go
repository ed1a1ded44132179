package iolock_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/internal/iolock"
)

// One goroutine at a time holds a Lock.
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

// Virtual time passes while a goroutine waits for the lock.
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

// TestTryLock: a lock that is held is not waited for.
func TestTryLock(t *testing.T) {
	var l iolock.Lock
	if !l.TryLock() || l.TryLock() {
		t.Error("a free lock was not taken, or one that is held was")
	}
	l.Unlock()
	if !l.TryLock() {
		t.Error("a lock that is free again was not taken")
	}
}
