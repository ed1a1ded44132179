package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/culvert-go/culvert/internal/leaktest"
)

// scenario is one kind of load and what is promised under it.
type scenario struct {
	name    string
	promise string
	clients int // how many run at the same time
	few     int // how many conversations are enough for a test
	// start starts targets and gateways, which end with the run. Each client calls what it returns
	// again and again.
	start func(*run) (converse func(*client))
}

// run is one run of a scenario. Its methods are safe for concurrent use.
type run struct {
	*scenario
	seed  uint64
	until time.Time // no conversation begins after it
	left  atomic.Int64
	tell  func(line string)

	exchanges, faults, broken atomic.Int64

	mu      sync.Mutex
	told    map[string]int // how often each promise was broken
	closers []func()
	sources uint64 // of random numbers
}

const (
	// patience is how long a client waits before it takes an exchange for one that is held for ever.
	patience = 2 * time.Minute
	// enough is how many of the lines about one broken promise are printed.
	enough = 5
)

// newRun returns a run without a bound in time or number.
func newRun(s *scenario, seed uint64, tell func(line string)) *run {
	r := &run{scenario: s, seed: seed, until: time.Now().Add(24 * time.Hour), tell: tell, told: map[string]int{}}
	r.left.Store(1 << 62)
	return r
}

// do runs the scenarios, all at once, and finds what they leave behind. The first one reports that.
func do(runs ...*run) {
	listen().Close() // the runtime keeps open what it opens with the first socket
	reported := races()
	leaks := &leakReport{run: runs[0]}
	leaktest.Check(leaks)
	var playing sync.WaitGroup
	for _, r := range runs {
		playing.Go(r.play)
	}
	playing.Wait()
	leaks.compare()
	if n := races() - reported; n > 0 {
		runs[0].broke("no data race", "%d reports", n)
	}
}

// play runs the scenario from its start to its end.
func (r *run) play() {
	converse := r.start(r)
	var clients sync.WaitGroup
	for range r.scenario.clients {
		clients.Go(func() {
			c := &client{run: r, Rand: r.random()}
			for time.Now().Before(r.until) && r.left.Add(-1) >= 0 {
				converse(c)
			}
		})
	}
	clients.Wait()
	for _, end := range slices.Backward(r.closers) {
		end()
	}
}

// broke notes a broken promise.
func (r *run) broke(promised, format string, args ...any) {
	r.broken.Add(1)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told[promised]++
	if r.told[promised] <= enough {
		r.tell(fmt.Sprintf("BROKEN %s: promised: %s; but: %s (seed %d)", r.name, promised, fmt.Sprintf(format, args...), r.seed))
	}
}

// fault notes a delay, cut or reset that was injected.
func (r *run) fault() { r.faults.Add(1) }

// atEnd has f called at the end of the run; the last one is called first.
func (r *run) atEnd(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closers = append(r.closers, f)
}

// random returns another source of random numbers, for one goroutine.
func (r *run) random() *rand.Rand {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sources++
	return rand.New(rand.NewPCG(r.seed, r.sources))
}

// leakReport is the test that leaktest reports to.
type leakReport struct {
	testing.TB
	run     *run
	compare func()
}

func (l *leakReport) Helper()          {}
func (l *leakReport) Cleanup(f func()) { l.compare = f }
func (l *leakReport) Errorf(format string, args ...any) {
	l.run.broke("no goroutine and no descriptor is left", format, args...)
}

// client is one of a run's clients.
type client struct {
	*run
	*rand.Rand
}

// odds reports whether something happens that does so in one of n cases.
func (c *client) odds(n int) bool { return c.IntN(n) == 0 }

// pause waits for a random time up to d.
func (c *client) pause(d time.Duration) {
	c.fault()
	pause(c.Rand, d)
}

func pause(rnd *rand.Rand, d time.Duration) { time.Sleep(upTo(rnd, d)) }

// upTo returns a random time of at most d.
func upTo(rnd *rand.Rand, d time.Duration) time.Duration {
	return time.Duration(rnd.Int64N(int64(d) + 1))
}

// pick returns one of the list.
func pick[T any](rnd *rand.Rand, list []T) T { return list[rnd.IntN(len(list))] }
