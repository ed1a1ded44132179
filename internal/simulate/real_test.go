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
	r := realRun{total: total, counts: counts{begun: time.Now()}, late: watchLateness(t)}
	var wg sync.WaitGroup
	for range *abreast {
		wg.Go(func() {
			for n, more := r.next(); more; n, more = r.next() {
				r.run(t, *seed+uint64(n))
			}
		})
	}
	wg.Wait()
	r.again(t)
	t.Cleanup(func() { fmt.Print(r.counts.String()) })
}

// realRun is a run of many histories at once.
type realRun struct {
	mu             sync.Mutex
	started, total int
	counts         counts
	late           *lateness
	doubtful       []uint64 // the seeds of histories that broke a rule while the process was woken too late
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
	begun := time.Now()
	plan := NewPlan(NewChoices(s))
	j := runReal(plan)
	if len(j.broken) == 0 || !r.late.since(begun) {
		r.judge(t, s, plan, j)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.doubtful = append(r.doubtful, s)
}

// again runs the doubtful histories alone, until the process is woken in time, and judges the last of 5 by all means.
func (r *realRun) again(t *testing.T) {
	for _, s := range r.doubtful {
		plan := NewPlan(NewChoices(s))
		begun := time.Now()
		j := runReal(plan)
		for n := 1; n < 5 && len(j.broken) > 0 && r.late.since(begun); n++ {
			begun = time.Now()
			j = runReal(plan)
		}
		r.judge(t, s, plan, j)
	}
	if len(r.doubtful) > 0 {
		fmt.Printf("%d histories were run again, alone: this process was woken up to %v late\n", len(r.doubtful), r.late.most())
	}
}

// judge counts a history, and reports the rules that it breaks.
func (r *realRun) judge(t *testing.T, s uint64, plan *Plan, j *Journal) {
	if *first && len(j.broken) > 0 {
		t.Errorf("found: %s within %d histories", j.broken[0].Rule, s-*seed+1)
	} else {
		for _, b := range j.broken {
			t.Errorf("seed %d: %v\n%s", s, b, j.Timeline())
		}
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
