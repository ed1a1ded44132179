package upstream_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/upstream"
)

// The share of failures within the window takes a target out, at a failure, if there are enough requests.
func TestFailRate(t *testing.T) {
	type options struct {
		rate float64
		min  int
	}
	for _, test := range []struct {
		o     options
		steps string // as in history; a lower case x is a request that the target does not get
		want  string
	}{
		{options{0.5, 4}, "fffs", "fffs"},                           // too few
		{options{0.5, 4}, "ffffs", "ffffx"},                         // enough
		{options{0.5, 4}, "sssffsffs", "sssffsffx"},                 // four of eight, not three of seven
		{options{0.5, 4}, "fffsss", "fffsss"},                       // a success takes nothing out
		{options{0.5, 4}, "fffsf", "fffsf"},                         // the failure behind it does
		{options{1, 2}, "sfff", "sfff"},                             // one has succeeded
		{options{1, 2}, "ffs", "ffx"},                               //
		{options{0.5, 4}, "fff...........fs", "fff...........fs"},   // the first are older than the window
		{options{0.5, 4}, "fff........fs", "fff........fx"},         // and not yet
		{options{0.3, 10}, "fffsssssssfs", "fffsssssssfx"},          // four of eleven
		{options{0.5, 2}, "ff...........sfs", "ff...........sfs"},   // it begins anew
		{options{0.5, 2}, "ff...........fs", "ff...........fx"},     // the one attempt fails
		{options{0.5, 2}, "ff...........sffs", "ff...........sffx"}, // two of three
	} {
		synctest.Test(t, func(t *testing.T) {
			o := upstream.Options{Balance: upstream.First(), FailRate: test.o.rate, FailMinRequests: test.o.min}
			if got := historyOf(t, o, upstream.Target{Addr: "a:1"}, test.steps); got != test.want {
				t.Errorf("%+v, history %s:\n got %s\nwant %s", test.o, test.steps, got, test.want)
			}
		})
	}
}

// A number of failures counts beside the rate if there is one, and nothing does if it is negative.
func TestFailRateBesideMaxFails(t *testing.T) {
	for maxFails, want := range map[int]string{0: "ffffffffffx", 2: "ffxxxxxxxxx", -1: "fffffffffff"} {
		synctest.Test(t, func(t *testing.T) {
			o := upstream.Options{Balance: upstream.First(), FailRate: 0.5}
			if got := historyOf(t, o, upstream.Target{Addr: "a:1", MaxFails: maxFails}, "fffffffffff"); got != want {
				t.Errorf("MaxFails %d: got %s, want %s", maxFails, got, want)
			}
		})
	}
}

// rateModel is the simplest implementation of FailRate.
type rateModel struct {
	rate  float64
	min   int
	width time.Duration // of a tenth
	times []time.Time
	bad   []bool
}

// ended counts an outcome, and reports whether it takes the target out.
func (m *rateModel) ended(failed bool) bool {
	m.times, m.bad = append(m.times, time.Now()), append(m.bad, failed)
	all, bad := 0, 0
	for i, at := range m.times {
		if at.UnixNano()/int64(m.width) > time.Now().UnixNano()/int64(m.width)-10 {
			all++
			if m.bad[i] {
				bad++
			}
		}
	}
	return failed && all >= m.min && float64(bad) >= m.rate*float64(all)-1e-9
}

// A target is taken out as rateModel says over random histories.
func TestFailRateModel(t *testing.T) {
	random, seed := newRandom()
	for range 100 {
		synctest.Test(t, func(t *testing.T) {
			window := time.Duration(1+random.IntN(40)) * time.Second
			m := &rateModel{rate: float64(1+random.IntN(10)) / 10, min: 1 + random.IntN(12), width: window / 10}
			o := upstream.Options{Balance: upstream.First(), FailRate: m.rate, FailMinRequests: m.min, FailWindow: window}
			p := newPicks(t, o, addrs("a b")...)
			badness := random.Float64()
			for step := range 300 {
				time.Sleep(time.Duration(random.IntN(int(window / 20))))
				failed := random.Float64() < badness
				p.lease().Done(outcomes["sf"[map[bool]int{true: 1}[failed]]])
				if out := m.ended(failed); (p.ejected() == "a") != out {
					t.Fatalf("seed %d, step %d: out %q, want %v (%+v)", seed, step, p.ejected(), out, m)
				} else if out {
					return
				}
			}
		})
	}
}

// Outcomes on several goroutines are all counted.
func TestFailRateUnderLoad(t *testing.T) {
	p := newPicks(t, upstream.Options{FailRate: 0.5, FailMinRequests: 6000, FailWindow: time.Hour}, addrs("a b")...)
	var clients sync.WaitGroup
	for i := range 6 {
		clients.Go(func() {
			for range 1000 {
				l := p.lease()
				l.Done(outcomes[map[bool]byte{true: 'f', false: 's'}[name(l) == "a" && i > 0]])
			}
		})
	}
	clients.Wait()
	if got := p.ejected(); got != "" {
		t.Errorf("%s are out before the least number of requests", got)
	}
	for p.ejected() == "" { // some of 3,000 outcomes are there
		l := p.lease()
		l.Done(outcomes[map[bool]byte{true: 'f', false: 's'}[name(l) == "a"]])
	}
	if got := p.ejected(); got != "a" {
		t.Errorf("%s is out, want a", got)
	}
	if got := strings.Count(p.send(10), "a"); got != 0 {
		t.Error(fmt.Sprint("a got ", got, " requests"))
	}
}
