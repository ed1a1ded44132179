package main

import (
	"strings"
	"testing"

	"github.com/culvert-go/culvert/internal/wiretest"
)

// TestEachScenario runs a bounded number of exchanges of each scenario. The program runs them for longer. As some mostly wait
// for bounds of seconds, all run at once; at their full size they run one after the other.
func TestEachScenario(t *testing.T) {
	if !wiretest.Full() {
		testScenarios(t, scenarios...)
		return
	}
	for _, s := range scenarios {
		testScenarios(t, s)
	}
}

// testScenarios runs scenarios at once.
func testScenarios(t *testing.T, scenarios ...*scenario) {
	var runs []*run
	var names []string
	for _, s := range scenarios {
		r := newRun(s, 1, func(line string) { t.Error(line) })
		r.left.Store(int64(wiretest.Size(s.few, s.few/4)))
		runs, names = append(runs, r), append(names, s.name)
	}
	t.Run(strings.Join(names, ", "), func(t *testing.T) {
		do(runs...)
		for _, r := range runs {
			t.Logf("%s: %d exchanges, %d faults, %d broken promises", r.name, r.exchanges.Load(), r.faults.Load(), r.broken.Load())
		}
	})
}
