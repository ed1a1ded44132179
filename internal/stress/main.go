// Command stress runs gateways and the clients and targets that once broke them in one process,
// for as long as wanted and with random delays, cuts and resets:
//
//	go run -race ./internal/stress -d 10m [-only name] [-seed N]
//
// Each scenario promises something, in its own words and beside what all of them promise: that the
// process lives, that no handler panics, that the race detector reports nothing (where it is
// compiled in) and that no goroutine and no descriptor is left at the end. A crash ends the
// program: it is what was looked for. The exit status is 1 if any promise was broken. Everything
// is on loopback.
package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"time"
)

// scenarios are all of them, in the order in which they run.
var scenarios = []*scenario{&early, &refused, &slow, &reader, &quick, &late, &interim, &ends, &trailers, &edits}

func main() {
	duration := flag.Duration("d", time.Minute, "how long the program runs: the scenarios share it")
	only := flag.String("only", "", "the names of the scenarios that run, with commas between them; all if empty")
	seed := flag.Uint64("seed", rand.Uint64(), "what random choices are derived from")
	flag.Parse()
	runtime.GOMAXPROCS(max(8, runtime.NumCPU())) // more threads than cores: more orders of events
	chosen, err := named(*only)
	if err != nil || flag.NArg() > 0 || *duration <= 0 {
		fmt.Fprintln(os.Stderr, "stress:", err)
		flag.Usage()
		os.Exit(2)
	}
	os.Exit(stress(chosen, *duration, *seed))
}

// named returns the scenarios with the names in list.
func named(list string) (chosen []*scenario, err error) {
	if list == "" {
		return scenarios, nil
	}
	for name := range strings.SplitSeq(list, ",") {
		found := false
		for _, s := range scenarios {
			if s.name == name {
				chosen, found = append(chosen, s), true
			}
		}
		if !found {
			return nil, fmt.Errorf("no scenario %q", name)
		}
	}
	return chosen, nil
}

// stress runs the scenarios one after the other and returns the exit status.
func stress(chosen []*scenario, d time.Duration, seed uint64) (status int) {
	fmt.Printf("seed %d\n", seed)
	var totals []string
	for _, s := range chosen {
		fmt.Printf("%s: %s\n", s.name, s.promise)
		r := newRun(s, seed, func(line string) { fmt.Println(line) })
		r.until = time.Now().Add(d / time.Duration(len(chosen)))
		do(r)
		if r.broken.Load() > 0 {
			status = 1
		}
		totals = append(totals, fmt.Sprintf("%s %d/%d/%d", s.name, r.exchanges.Load(), r.faults.Load(), r.broken.Load()))
	}
	fmt.Printf("exchanges/faults/broken promises: %s\n", strings.Join(totals, ", "))
	return status
}
