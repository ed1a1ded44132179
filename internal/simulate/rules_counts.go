package simulate

import (
	"slices"
	"time"
)

// watchCounts looks at the group now and then, at instants at which nothing else happens: no target has more
// requests than its MaxConns, and none waits while a target is free.
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

// checkCounts checks the counts of one instant. In real time the next request may be on its way from the queue to the
// free target.
func (w *world) checkCounts() {
	w.sampleGroup()
	for _, check := range w.gateway.checks {
		check()
	}
	p := &w.plan.Gateway
	free := ""
	for s := range w.gateway.group.Targets() {
		most := s.Target.MaxConns
		if most > 0 && s.InFlight > most && !w.plan.setsPlaces() {
			w.journal.Break("counts", "%s has %d requests, MaxConns is %d", s.Target.Addr, s.InFlight, most)
		}
		if s.Healthy && (most == 0 || s.InFlight < most) {
			free = s.Target.Addr
		}
	}
	w.checkBlame()
	waiting := w.gateway.group.Waiting()
	if waiting > p.Queue {
		w.journal.Break("counts", "%d requests wait, the queue has room for %d", waiting, p.Queue)
	}
	retries := p.RetryErrors || p.RetryTimeouts || p.RetryStatus
	for i := range w.plan.Targets { // a target that can't be dialled is followed by another one, too
		retries = retries || len(w.plan.Targets[i].Dials) > 0 || w.refusedDials(i)
	}
	if waiting > 0 && free != "" && !retries && w.sockets == nil && !p.Check && len(w.plan.Changes) == 0 {
		w.journal.Break("counts", "%d requests wait while %s is free", waiting, free)
	}
	if n := w.gateway.group.InFlight(); p.MaxInFlight > 0 && n > p.MaxInFlight {
		w.journal.Break("counts", "%d requests are in flight, MaxInFlight is %d", n, p.MaxInFlight)
	}
}

// refusedDials reports whether the ith target has refused dials: a request that it refused waits for another one.
func (w *world) refusedDials(i int) bool {
	now := w.journal.now()
	return slices.ContainsFunc(w.plan.Upstream.Targets[i].Ill, func(n Illness) bool { return n.How == IllDown && n.From <= now })
}
