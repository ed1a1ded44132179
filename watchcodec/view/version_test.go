package view

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestClock: versions increase even if the clock is set back, and distinguish Views.
func TestClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newClock(), newClock()
		future := uint64(time.Now().Add(time.Hour).UnixMicro())<<idBits | a.id
		a.last = future // the time was set back by an hour since
		for last := future; last < future+10<<idBits; {
			next := a.next()
			if next <= last || !a.own(next) || b.own(next) {
				t.Fatalf("%d follows %d", next, last)
			}
			last = next
		}
		time.Sleep(2 * time.Hour)
		if next := a.next(); next != uint64(time.Now().UnixMicro())<<idBits|a.id {
			t.Errorf("%d is not the time", next)
		}
		if next := a.next(); next>>63 != 0 {
			t.Error("clients read versions as signed numbers")
		}
	})
}
