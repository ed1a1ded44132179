package simulate

import (
	"flag"
	"fmt"
	"io"
	"log"
	"math"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/internal/bufpool"
)

var (
	seed      = flag.Uint64("seed", 1, "the seed of the first history")
	histories = flag.Int("histories", 200, "how many histories are run")
	repeat    = flag.String("repeat", "", "a list of choices to repeat, in place of seeds")
	stacks    = flag.Duration("stacks", 0, "print the goroutines at this moment of the history")
	shrink    = flag.Int("shrink", 1500, "how many histories are run to shrink one")
	keep      = flag.Bool("keep", false, "go on behind a broken rule")
	first     = flag.Bool("first", false, "stop at the first broken rule, and don't shrink it")
)

// TestMain silences net/http's transport, which logs what a target sends behind its responses, and lets a use of
// a pooled buffer behind its release show.
func TestMain(m *testing.M) {
	log.SetOutput(io.Discard)
	bufpool.Poison = true
	os.Exit(m.Run())
}

// TestHistories runs random histories, and shrinks the first one in which a rule breaks.
func TestHistories(t *testing.T) {
	if *repeat != "" {
		j := runPlan(t, NewPlan(Repeat(parse(t, *repeat))))
		t.Errorf("%v\n%s", j.broken, j.Timeline())
		return
	}
	var c counts
	for range runtime.GOMAXPROCS(0) {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			for n := c.next(); n < *histories; n = c.next() {
				runSeed(t, *seed+uint64(n), &c)
			}
		})
	}
	t.Cleanup(func() { fmt.Print(c.String()) })
}

// runSeed runs a seed's history, and shrinks the first one in which a rule breaks.
func runSeed(t *testing.T, s uint64, c *counts) {
	if *first {
		fmt.Printf("history %d\n", s-*seed+1) // the last one is that which ended the process
	}
	choices := NewChoices(s)
	plan := NewPlan(choices)
	j := runPlan(t, plan)
	foremost := c.add(plan, j)
	switch {
	case len(j.broken) == 0:
	case *first:
		t.Errorf("found: %s within %d histories", j.broken[0].Rule, s-*seed+1)
	case *keep:
		t.Errorf("seed %d: %v", s, j.broken[0])
	case foremost:
		report(t, s, choices.List(), j)
	}
}

// counts is what histories consisted of.
type counts struct {
	mu                                    sync.Mutex
	begun                                 int
	histories, requests, attempts, broken int
	faults, clients, filters              Tally
}

// next returns the number of a history that no goroutine has run. None follows one that breaks a rule, unless
// the flags say so.
func (c *counts) next() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken > 0 && !*keep {
		return math.MaxInt
	}
	c.begun++
	return c.begun - 1
}

// add counts a history, and reports whether it is the first one with a broken rule.
func (c *counts) add(p *Plan, j *Journal) (first bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	first = c.broken == 0 && len(j.broken) > 0
	c.histories++
	c.requests += len(j.outcomes)
	for _, s := range j.sights {
		c.attempts += len(s)
	}
	c.broken += len(j.broken)
	c.faults.AddAll(&j.faults)
	for i := range p.Clients {
		c.clients.Add(p.Clients[i].Kind.String(), len(p.Clients[i].Requests))
	}
	for _, kind := range p.Gateway.Filters {
		c.filters.Add(filterKinds[kind].name, 1)
	}
	return first
}

func (c *counts) String() string {
	return fmt.Sprintf("requests by client: %v\nfaults: %v\nfilters: %v\n%d histories, %d requests, %d attempts, %d faults, %d broken rules\n",
		&c.clients, &c.faults, &c.filters, c.histories, c.requests, c.attempts, c.faults.Sum(), c.broken)
}

// runPlan runs a plan in a bubble, and finds what is left behind.
func runPlan(t *testing.T, plan *Plan) (j *Journal) {
	j = NewJournal()
	stalled := time.AfterFunc(time.Minute, func() {
		panic("time does not pass: a goroutine waits for a mutex whose holder waits for time\n" + everything() + j.Timeline())
	})
	defer stalled.Stop()
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
		Run(plan, j)
		synctest.Wait()
		if stacks := left(began); stacks != "" {
			j.Break("left", "goroutines:\n%s", stacks)
		}
	})
	return j
}

// report shrinks a history and prints it.
func report(t *testing.T, s uint64, list []uint32, j *Journal) {
	t.Helper()
	rule := j.broken[0].Rule
	shrunk := Shrink(list, *shrink, func(candidate []uint32) bool {
		j := runPlan(t, NewPlan(Repeat(candidate)))
		return len(j.broken) > 0 && j.broken[0].Rule == rule
	})
	plan := NewPlan(Repeat(shrunk))
	j = runPlan(t, plan)
	fmt.Printf("-repeat %s\n", join(shrunk))
	t.Errorf("seed %d breaks %q, shrunk from %d choices to %d:\n%+v\n\n%s", s, rule, len(list), len(shrunk), *plan, j.Timeline())
	for _, b := range j.broken {
		t.Errorf("%v", b)
	}
}

func join(list []uint32) string {
	var b strings.Builder
	for i, v := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprint(&b, v)
	}
	return b.String()
}

func parse(t *testing.T, s string) (list []uint32) {
	for field := range strings.SplitSeq(s, ",") {
		v, err := strconv.ParseUint(field, 10, 32)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, uint32(v))
	}
	return list
}
