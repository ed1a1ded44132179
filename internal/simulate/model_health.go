package simulate

import (
	"slices"
	"time"

	"github.com/culvert-go/culvert/upstream"
)

// health is the health of one target as upstream.Target, Options and Check document it. It is a value, so that several can
// be compared: the order of events at one instant is not known, and each order is followed (healths, groupStates).
type health struct {
	failures [maxFailures]time.Duration // within FailTimeout, the oldest first
	count    int
	out      bool          // failures have taken it out
	since    time.Duration // the last failure, or the request that was let through after it
	failed   time.Duration // the last failure
	sick     bool          // by active checks

	times  int           // how often in a row it was taken out, if the time grows (Options.MaxFailTimeout)
	backAt time.Duration // when it was last brought back, if the time grows
	rate   failShare
	panics bool // the health of all does not count (Options.PanicThreshold)
}

// maxFailures is the largest MaxFails of a plan.
const maxFailures = 3

// failShare counts the outcomes of the tenths of Options.FailWindow.
type failShare [10]struct {
	number      time.Duration
	all, failed int
}

// add counts an outcome, and returns the counts of the window.
func (f *failShare) add(at, window time.Duration, bad bool) (all, failed int) {
	number := at / (window / 10)
	t := &f[number%10]
	if t.number != number {
		*t = failShare{}[0]
		t.number = number
	}
	t.all++
	if bad {
		t.failed++
	}
	for _, t := range f {
		if number-10 < t.number && t.number <= number {
			all, failed = all+t.all, failed+t.failed
		}
	}
	return all, failed
}

// rulesOf are the options that a health follows.
type rulesOf struct {
	maxFails       int // 0: only their share takes the target out
	failTimeout    time.Duration
	only           bool          // the only target of its group, which failures never take out
	maxFailTimeout time.Duration // 0: the time does not grow
	failRate       float64
	failMin        int
	failWindow     time.Duration
}

// healthRules returns the rules of a target in a group of n.
func (u *UpstreamPlan) healthRules(t upstream.Target, n int) rulesOf {
	f := &u.Floors
	r := rulesOf{t.MaxFails, or(t.FailTimeout, 10*time.Second), n == 1, f.MaxFailTimeout, f.FailRate, or(f.FailMinRequests, 10), or(f.FailWindow, 10*time.Second)}
	if r.maxFails == 0 && f.FailRate == 0 {
		r.maxFails = 1
	}
	if r.maxFailTimeout <= r.failTimeout {
		r.maxFailTimeout = 0
	}
	return r
}

// rules returns the rules of a target in a group of n.
func (m *model) rules(t upstream.Target, n int) rulesOf { return m.w.plan.Upstream.healthRules(t, n) }

// healthy reports whether the target may get a request at a moment, as far as its own health is concerned.
func (h health) healthy(r rulesOf, at time.Duration) bool {
	return !h.sick && (!h.isOut(r) || at > h.since+h.outage(r))
}

// available reports whether the target may get a request at a moment.
func (h health) available(r rulesOf, at time.Duration) bool { return h.panics || h.healthy(r, at) }

// isOut reports whether failures have taken the target out.
func (h health) isOut(r rulesOf) bool { return h.out && !r.only && r.maxFails >= 0 }

// outage returns for how long the target is out.
func (h health) outage(r rulesOf) time.Duration {
	if r.maxFailTimeout == 0 {
		return r.failTimeout
	}
	return min(time.Duration(max(1, h.times))*r.failTimeout, r.maxFailTimeout)
}

// fails returns the number of failures within FailTimeout.
func (h health) fails(r rulesOf, at time.Duration) int {
	n := 0
	for _, f := range h.failures[:h.count] {
		if at-f <= r.failTimeout {
			n++
		}
	}
	return n
}

// forgiven returns h without its failures.
func (h health) forgiven(r rulesOf, at time.Duration) health {
	h.failures, h.count, h.rate = [maxFailures]time.Duration{}, 0, failShare{}
	return h.back(r, at)
}

// back returns h as one that is not out.
func (h health) back(r rulesOf, at time.Duration) health {
	if h.out && r.maxFailTimeout > 0 {
		h.backAt = at
	}
	h.out = false
	return h
}

// ejected returns h as one that failures take out: for longer than the last time, but for the time for which it was back.
func (h health) ejected(r rulesOf, at time.Duration) health {
	if r.maxFailTimeout > 0 {
		h.times = max(0, h.times-int((at-h.backAt)/r.failTimeout)) + 1
	}
	h.out = true
	return h
}

// step is an event that concerns a target's health.
type step int

const (
	stepPick    step = iota // it gets a request
	stepFail                // a request has failed, and the target is to blame
	stepSucceed             // a request has succeeded
	stepNothing             // a request has ended that does not count
	stepUnclear             // one of the three
	stepSick                // checks take it out
	stepWell                // checks bring it back
)

// after returns the possible states of h after a step, none if the step must not happen.
func (h health) after(s step, r rulesOf, at time.Duration) []health {
	switch s {
	case stepPick:
		return h.picked(r, at)
	case stepFail:
		return h.afterFailure(r, at)
	case stepSucceed:
		return h.afterSuccess(r, at)
	case stepUnclear:
		return append(append(h.afterFailure(r, at), h.afterSuccess(r, at)...), h)
	case stepSick:
		h.sick, h.since = true, at
	case stepWell:
		h = h.forgiven(r, at)
		h.sick, h.times = false, 0
	}
	return []health{h}
}

// picked is after for stepPick: a healthy target may get any request, one that is out gets one each time its time is over.
func (h health) picked(r rulesOf, at time.Duration) []health {
	over := h.since + h.outage(r)
	switch {
	case h.sick && !h.panics:
		return nil
	case !h.isOut(r), at < over && h.panics:
		return []health{h}
	case at < over:
		return nil
	}
	let := h
	let.since = at
	if h.panics && at == over {
		return []health{h, let}
	}
	return []health{let}
}

// counted counts a failure, and reports whether it takes the target out, if nothing else keeps it.
func (h health) counted(r rulesOf, at time.Duration) (after health, reached bool) {
	if h.out && h.failed < h.since && r.maxFailTimeout > 0 { // the request that was let through
		h.times++
	}
	kept := slices.DeleteFunc(slices.Clone(h.failures[:h.count]), func(f time.Duration) bool { return at-f > r.failTimeout })
	kept = append(kept, at)
	kept = kept[max(0, len(kept)-r.maxFails):]
	h.failures = [maxFailures]time.Duration{}
	h.count = copy(h.failures[:], kept)
	h.since, h.failed = at, at
	reached = r.maxFails > 0 && h.count >= r.maxFails
	if r.failRate > 0 {
		all, bad := h.rate.add(at, r.failWindow, true)
		reached = reached || all >= r.failMin && float64(bad) >= r.failRate*float64(all)-1e-9
	}
	return h, reached && !h.out
}

// afterFailure counts a failure of a target that may be taken out.
func (h health) afterFailure(r rulesOf, at time.Duration) []health {
	if r.maxFails < 0 {
		return []health{h}
	}
	h, reached := h.counted(r, at)
	switch {
	case !reached:
		return []health{h}
	case r.only:
		return []health{h.ejected(r, at), h} // the documentation leaves open whether it is out when another target is added
	}
	return []health{h.ejected(r, at)}
}

// afterSuccess brings a target back that got a request while it was out.
func (h health) afterSuccess(r rulesOf, at time.Duration) []health {
	if r.failRate > 0 && r.maxFails >= 0 {
		h.rate.add(at, r.failWindow, false)
	}
	switch {
	case !h.out:
		return []health{h}
	case r.only || r.maxFails < 0:
		return []health{h, h.forgiven(r, at)} // not documented either
	case h.since <= h.failed:
		return []health{h}
	}
	return []health{h.forgiven(r, at)}
}

// healths holds the possible states of a target's health.
type healths []health

// all reports whether f holds for each.
func (l healths) all(f func(health) bool) bool {
	return !slices.ContainsFunc(l, func(h health) bool { return !f(h) })
}

// follow returns the possible states after steps that happen at one instant, in any order that the documentation
// permits; none if there is no such order. before[i] is the step that must come before the ith, -1 for none.
func (l healths) follow(steps []step, before []int, rules []rulesOf, at time.Duration) healths {
	type node struct {
		done uint32
		h    health
	}
	seen := map[node]bool{}
	var list healths
	var visit func(n node)
	visit = func(n node) {
		if seen[n] {
			return
		}
		seen[n] = true
		if n.done == 1<<len(steps)-1 {
			if !slices.Contains(list, n.h) {
				list = append(list, n.h)
			}
			return
		}
		for i, s := range steps {
			if n.done>>i&1 == 1 || before[i] >= 0 && n.done>>before[i]&1 == 0 {
				continue
			}
			for _, r := range rules {
				for _, h := range n.h.after(s, r, at) {
					visit(node{n.done | 1<<i, h})
				}
			}
		}
	}
	for _, h := range l {
		visit(node{0, h})
	}
	return list
}
