package simulate

import (
	"flag"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
)

var (
	realSockets = flag.Bool("real", false, "run the histories over real sockets, in real time")
	abreast     = flag.Int("abreast", 64, "how many histories are run at once over real sockets, where they mostly wait")
)

// TestRealHistories runs a few histories over real sockets.
func TestRealHistories(t *testing.T) {
	if *realSockets || *worker {
		return // TestHistories runs them
	}
	testReal(t, wiretest.Size(200, 60))
}

// testReal runs histories over real sockets, and finds goroutines and descriptors that they leave.
func testReal(t *testing.T, total int) {
	leaktest.Check(t)
	if *repeat != "" {
		j := runReal(NewPlan(Repeat(parse(t, *repeat))))
		t.Errorf("%v\n%s", j.broken, j.Timeline())
		return
	}
	r := realRun{total: total, counts: counts{begun: time.Now()}}
	var wg sync.WaitGroup
	for range *abreast {
		wg.Go(func() {
			for n, more := r.next(); more; n, more = r.next() {
				r.run(t, *seed+uint64(n))
			}
		})
	}
	wg.Wait()
	t.Cleanup(func() { fmt.Print(r.counts.String()) })
}

// realRun is a run of many histories at once.
type realRun struct {
	mu             sync.Mutex
	started, total int
	counts         counts
}

// next returns the number of a history that was not run, if there is one. None follows one that breaks a rule,
// unless the flags say so.
func (r *realRun) next() (n int, more bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.started++
	return r.started - 1, r.started <= r.total && !r.counts.over()
}

// run runs a seed's history.
func (r *realRun) run(t *testing.T, s uint64) {
	plan := NewPlan(NewChoices(s))
	j := runReal(plan)
	if *first && len(j.broken) > 0 {
		t.Errorf("found: %s within %d histories", j.broken[0].Rule, s-*seed+1)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.counts.add(plan, j)
		return
	}
	for _, b := range j.broken {
		t.Errorf("seed %d: %v\n%s", s, b, j.Timeline())
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts.add(plan, j)
	r.counts.progress()
}

// runReal runs a plan over real sockets.
func runReal(plan *Plan) *Journal {
	j := NewJournal()
	stalled := time.AfterFunc(10*patience, func() { panic("a history does not end\n" + everything() + j.Timeline()) })
	defer stalled.Stop()
	RunReal(plan, j)
	return j
}
