package main

import (
	"testing"

	"github.com/culvert-go/culvert/internal/wiretest"
)

// TestEachScenario runs a bounded number of exchanges of each scenario. The program runs them for longer.
func TestEachScenario(t *testing.T) {
	for _, s := range tested {
		t.Run(s.name, func(t *testing.T) {
			r := newRun(s, 1, func(line string) { t.Error(line) })
			r.left.Store(int64(wiretest.Size(s.few, s.few/4)))
			r.do()
			t.Logf("%d exchanges, %d faults, %d broken promises", r.exchanges.Load(), r.faults.Load(), r.broken.Load())
		})
	}
}

// tested are all scenarios; the program runs them for longer.
var tested = scenarios
