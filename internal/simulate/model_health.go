package simulate

import (
	"slices"
	"time"

	"github.com/culvert-go/culvert/upstream"
)

// health is the health of one target as upstream.Target and upstream.Check document it. It is a value, so that several can
// be compared: the order of events at one instant is not known, and each order is followed (healths).
type health struct {
	failures [maxFailures]time.Duration // within FailTimeout, the oldest first
	count    int
	out      bool          // MaxFails was reached
	since    time.Duration // the last failure, or the request that was let through after it
	failed   time.Duration // the last failure
	sick     bool          // by active checks
}

// maxFailures is the largest MaxFails of a plan.
const maxFailures = 3

// rulesOf are the options that a health follows.
type rulesOf struct {
	maxFails    int
	failTimeout time.Duration
	only        bool // the only target of its group, which failures never take out
}

// healthRules returns the rules of a target in a group of n.
func healthRules(t upstream.Target, n int) rulesOf {
	r := rulesOf{t.MaxFails, t.FailTimeout, n == 1}
	if r.maxFails == 0 {
		r.maxFails = 1
	}
	if r.failTimeout == 0 {
		r.failTimeout = 10 * time.Second
	}
	return r
}

// healthy reports whether the target may get a request at a moment.
func (h health) healthy(r rulesOf, at time.Duration) bool {
	return !h.sick && (!h.isOut(r) || at > h.since+r.failTimeout)
}

// isOut reports whether failures have taken the target out.
func (h health) isOut(r rulesOf) bool { return h.out && !r.only && r.maxFails > 0 }

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
func (h health) forgiven() health {
	h.failures, h.count, h.out = [maxFailures]time.Duration{}, 0, false
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
		return h.afterSuccess(r)
	case stepUnclear:
		return append(append(h.afterFailure(r, at), h.afterSuccess(r)...), h)
	case stepSick:
		h.sick, h.since = true, at
	case stepWell:
		h = h.forgiven()
		h.sick = false
	}
	return []health{h}
}

// picked is after for stepPick: a healthy target may get any request, one that is out gets one each FailTimeout.
func (h health) picked(r rulesOf, at time.Duration) []health {
	switch {
	case h.sick:
		return nil
	case !h.isOut(r):
		return []health{h}
	case at < h.since+r.failTimeout:
		return nil
	}
	h.since = at
	return []health{h}
}

// afterFailure counts a failure.
func (h health) afterFailure(r rulesOf, at time.Duration) []health {
	if r.maxFails < 0 {
		return []health{h}
	}
	kept := slices.DeleteFunc(slices.Clone(h.failures[:h.count]), func(f time.Duration) bool { return at-f > r.failTimeout })
	kept = append(kept, at)
	kept = kept[max(0, len(kept)-r.maxFails):]
	h.failures = [maxFailures]time.Duration{}
	h.count = copy(h.failures[:], kept)
	h.since, h.failed = at, at
	list := []health{h}
	if h.count >= r.maxFails {
		if r.only && !h.out {
			list = append(list, h) // the documentation does not say whether it is out when another target is added
		}
		list[0].out = true
	}
	return list
}

// afterSuccess brings a target back that got a request while it was out.
func (h health) afterSuccess(r rulesOf) []health {
	switch {
	case !h.out:
		return []health{h}
	case r.only || r.maxFails < 0:
		return []health{h, h.forgiven()} // not documented either
	case h.since <= h.failed:
		return []health{h}
	}
	return []health{h.forgiven()}
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
