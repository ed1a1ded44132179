package main

import (
	"runtime"
	"slices"
	"time"
)

// atRate is work that is sent at a rate, without waiting for the peer.
type atRate struct {
	rate        int // a second, over all connections
	connections int
	duration    time.Duration
}

// run opens the connections, has each do its share, and returns the times that it took, in order.
// A time begins when the work was due: a peer that holds one up holds up those behind it, and that
// counts. That a timer wakes this program too late does not: the time begins then. It runs on
// one processor, so that the others are the peer's and the origin's.
func (r atRate) run(open func() (do, end func() error, err error)) ([]time.Duration, error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	times := make([][]time.Duration, r.connections)
	interval := time.Duration(r.connections) * time.Second / time.Duration(r.rate)
	start := time.Now().Add(100 * time.Millisecond)
	err := each(r.connections, func(i int) error {
		do, end, err := open()
		if err != nil {
			return err
		}
		defer end()
		for due := start.Add(interval * time.Duration(i) / time.Duration(r.connections)); due.Before(start.Add(r.duration)); due = due.Add(interval) {
			begun := due
			if early := time.Until(due); early > 0 {
				time.Sleep(early)
				begun = time.Now()
			}
			if err := do(); err != nil {
				return err
			}
			times[i] = append(times[i], time.Since(begun))
		}
		return nil
	})
	all := slices.Concat(times...)
	slices.Sort(all)
	return all, err
}
