package upstream_test

import (
	"testing"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/upstream"
)

// A lease that is released twice frees one place, and its outcome counts once, even if other leases
// have been made since. The zero Lease frees none.
func TestDoneTwice(t *testing.T) {
	p := newPicks(t, upstream.Options{}, upstream.Target{Addr: "a:1", MaxConns: 2, MaxFails: 3}, upstream.Target{Addr: "b:1", MaxConns: 2, MaxFails: 3})
	check := func(inFlight, fails int) {
		t.Helper()
		sum, failed := 0, 0
		for s := range p.g.Targets() {
			sum, failed = sum+s.InFlight, failed+s.Fails
		}
		if sum != inFlight || p.g.InFlight() != inFlight || failed != fails {
			t.Errorf("targets have %d in flight, the group %d, want %d; %d failures, want %d", sum, p.g.InFlight(), inFlight, failed, fails)
		}
	}
	first := p.lease()
	copied := first
	first.Done(outcomes['f'])
	first.Done(outcomes['f'])
	copied.Done(outcomes['f'])
	upstream.Lease{}.Done(outcomes['f'])
	check(0, 1)
	var held []upstream.Lease
	for n := range 4 {
		held = append(held, p.lease())
		copied.Done(outcomes['f'])
		check(n+1, 1)
	}
	_, err := p.g.Pick(t.Context(), request())
	refused(t, err, culvert.Busy, "every target has its MaxConns")
	for n, l := range held {
		l.Done(outcomes['s'])
		first.Done(outcomes['s'])
		held[0].Done(outcomes['s'])
		check(3-n, 1)
	}
}
