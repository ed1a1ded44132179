package simulate

import (
	"slices"
	"time"
)

// watchCounts checks the group from time to time, at instants at which nothing else happens: no target has more requests
// than its MaxConns, and no more wait than the queue may hold. checkWaiting checks the same instants.
func (w *world) watchCounts() (stop func()) {
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for pause := 3 * time.Millisecond; ; pause = min(pause+pause/8, 10*time.Second) {
			// Arrivals are on whole tens of microseconds and a small offset.
			next := time.Now().Add(pause).Truncate(instant).Add(instant/2 + 777*time.Nanosecond)
			select {
			case <-time.After(time.Until(next)):
				w.checkCounts()
			case <-end:
				return
			}
		}
	}()
	return func() { close(end); <-ended }
}

// checkCounts checks the counts of one instant.
func (w *world) checkCounts() {
	w.sampleGroup()
	for _, check := range w.gateway.checks {
		check()
	}
	p := &w.plan.Gateway
	for s := range w.gateway.population().Targets() {
		most := s.Target.MaxConns
		if most > 0 && s.InFlight > most && !w.plan.setsPlaces() {
			w.journal.Break("counts", "%s has %d requests, MaxConns is %d", s.Target.Addr, s.InFlight, most)
		}
	}
	w.checkBlame()
	waiting := w.gateway.population().Waiting()
	if p.Dynamic { // each target has a queue
		p = &GatewayPlan{Queue: p.Queue * len(w.plan.Targets)}
	}
	if waiting > p.Queue {
		w.journal.Break("counts", "%d requests wait, Queue is %d", waiting, p.Queue)
	}
	if n := w.gateway.population().InFlight(); p.MaxInFlight > 0 && n > p.MaxInFlight {
		w.journal.Break("counts", "%d requests are in flight, MaxInFlight is %d", n, p.MaxInFlight)
	}
}

// checkWaiting checks the instants of checkCounts when the history has ended, and it is known which targets a request had tried
// before it waited: while a target is free, only requests that have tried it may wait. A check or a change may take effect within
// an instant. The caller holds the journal's mutex.
func (w *world) checkWaiting() {
	if w.plan.Gateway.Check || w.plan.Gateway.Dynamic || len(w.plan.Changes) > 0 {
		return
	}
	for _, s := range w.journal.samples {
		if s.waiting == 0 {
			continue
		}
		for _, t := range s.targets {
			most := t.Target.MaxConns
			if free := t.Healthy && !t.Target.Draining && (most == 0 || t.InFlight < most); !free {
				continue
			}
			if n := w.triedBefore(t.Target.Addr, s.at); s.waiting > n {
				w.journal.breakAt(s.at, "counts", "%d requests wait while %s is free, which %d have tried", s.waiting, t.Target.Addr, n)
				break
			}
		}
	}
}

// triedBefore returns how many requests may wait at a moment because they have already tried target.
func (w *world) triedBefore(target string, at time.Duration) (n int) {
	for _, p := range w.journal.passages {
		ended := slices.IndexFunc(p.Attempts, func(a Attempt) bool { return a.Target == target && a.Ended <= at })
		runs := slices.ContainsFunc(p.Attempts, func(a Attempt) bool { return a.Began <= at && at < a.Ended })
		if ended >= 0 && !runs && at <= p.Returned {
			n++
		}
	}
	return n
}
