package simulate

import (
	"slices"
	"time"

	"github.com/culvert-go/culvert/upstream"
)

// groupState is the health of all targets of the plan, by their index: with Options.MaxEjected or PanicThreshold that of each depends
// on that of the others.
type groupState [mostTargets]health

// mostTargets is how many targets a plan has at most.
const mostTargets = 4

// The model follows no more states of a group, and no more steps of one instant.
const (
	mostStates = 100
	mostSteps  = 8
)

// groupStep is an event that concerns the health of a group's target, or replaces the targets.
type groupStep struct {
	step
	target int // of the plan; -1: the targets are replaced
	before int // the step that must come before it, -1 for none
}

// targetIndex returns the index of a target in the plan.
func (m *model) targetIndex(addr string) int {
	return slices.IndexFunc(m.w.plan.Targets, func(t TargetPlan) bool { return t.Addr == addr })
}

// followGroup updates the health of all targets by the steps of one instant. lists are the group's targets before, and after each
// replacement.
func (m *model) followGroup(steps []groupStep, lists [][]upstream.Target) {
	if m.group == nil {
		m.group = []groupState{{}}
	}
	if len(steps) > mostSteps {
		m.unclear = true
		return
	}
	if len(steps) > 0 {
		after := m.possible(steps, lists)
		switch {
		case len(after) == 0:
			m.fail("health", "a target gets a request while it is out: %+v", m.group)
			m.unclear = true
			return
		case len(after) > mostStates:
			m.unclear = true
			return
		}
		m.group = after
	}
	for addr, s := range m.states {
		s.health = nil
		i := m.targetIndex(addr)
		for _, g := range m.group {
			h := g[i]
			h.panics = m.panics(&g, m.targets)
			if !slices.Contains(s.health, h) {
				s.health = append(s.health, h)
			}
		}
	}
}

// possible returns the possible states after steps that happen in any order that the documentation permits.
func (m *model) possible(steps []groupStep, lists [][]upstream.Target) (list []groupState) {
	type node struct {
		done uint32
		sets int // how many of the steps that replace the targets are done
		g    groupState
	}
	seen := map[node]bool{}
	var visit func(n node)
	visit = func(n node) {
		if seen[n] || len(list) > mostStates {
			return
		}
		seen[n] = true
		if n.done == 1<<len(steps)-1 {
			if !slices.Contains(list, n.g) {
				list = append(list, n.g)
			}
			return
		}
		for i, s := range steps {
			if n.done>>i&1 == 1 || s.before >= 0 && n.done>>s.before&1 == 0 {
				continue
			}
			next := node{done: n.done | 1<<i, sets: n.sets}
			if s.target < 0 {
				next.sets++
			}
			for _, g := range m.afterStep(n.g, s, lists[n.sets], lists[next.sets]) {
				next.g = g
				visit(next)
			}
		}
	}
	for _, g := range m.group {
		visit(node{g: g})
	}
	return list
}

// afterStep returns the possible states after a step, with the group's targets before and after it.
func (m *model) afterStep(g groupState, s groupStep, before, list []upstream.Target) (after []groupState) {
	if s.target < 0 {
		for _, g := range m.forgotten(g, list) {
			after = append(after, m.kept(g, list, -1)...)
		}
		return after
	}
	for _, r := range m.rulesIn(s.target, list) {
		for _, h := range m.afterOne(g, s, r, list) {
			next := g
			next[s.target] = h
			if s.step != stepSick {
				after = append(after, next)
				continue
			}
			// Targets are brought back before.
			sick := g
			sick[s.target].sick = true
			for _, k := range m.kept(sick, list, s.target) {
				k[s.target] = h
				after = append(after, k)
			}
		}
	}
	return after
}

// rulesIn returns the rules of a target in a list; those of a target that is not there are as it was configured.
func (m *model) rulesIn(i int, list []upstream.Target) []rulesOf {
	if n := indexOf(list, m.w.plan.Targets[i].Addr); n >= 0 {
		return []rulesOf{m.rules(list[n], len(list))}
	}
	t := m.configured(m.w.plan.Targets[i].Addr)
	return []rulesOf{m.rules(t, 1), m.rules(t, 2)}
}

// afterOne is health.after for a target of a group.
func (m *model) afterOne(g groupState, s groupStep, r rulesOf, list []upstream.Target) []health {
	h := g[s.target]
	switch s.step {
	case stepPick:
		h.panics = m.panics(&g, list)
		after := h.picked(r, m.at)
		for i := range after {
			after[i].panics = false
		}
		return after
	case stepFail:
		return m.afterFailure(g, s.target, r, list)
	case stepUnclear:
		return append(append(m.afterFailure(g, s.target, r, list), h.afterSuccess(r, m.at)...), h)
	}
	return h.after(s.step, r, m.at)
}

// afterFailure counts a failure of a target, which takes it out if the group can do without it.
func (m *model) afterFailure(g groupState, i int, r rulesOf, list []upstream.Target) []health {
	f := &m.w.plan.Upstream.Floors
	if f.MaxEjected == 1 || indexOf(list, m.w.plan.Targets[i].Addr) < 0 {
		return g[i].afterFailure(r, m.at)
	}
	if r.maxFails < 0 {
		return []health{g[i]}
	}
	h, reached := g[i].counted(r, m.at)
	if reached {
		g[i] = h.ejected(r, m.at)
		if c := m.census(&g, list, i); c.left > 0 && c.ejected <= f.mostEjected(c.all) {
			return []health{g[i]}
		}
	}
	return []health{h}
}

// groupCensus counts the targets of a list that are not Down.
type groupCensus struct{ all, ejected, left int }

// census counts the targets of a list. ejected is one that is to be taken out, -1 for none.
func (m *model) census(g *groupState, list []upstream.Target, ejected int) (c groupCensus) {
	for _, t := range list {
		if t.Down {
			continue
		}
		i := m.targetIndex(t.Addr)
		c.all++
		switch {
		case i == ejected, g[i].isOut(m.rules(t, len(list))):
			c.ejected++
		case !g[i].sick:
			c.left++
		}
	}
	return c
}

// panics reports whether health does not count.
func (m *model) panics(g *groupState, list []upstream.Target) bool {
	c := m.census(g, list, -1)
	return float64(c.left) < m.w.plan.Upstream.Floors.PanicThreshold*float64(c.all)-1e-9
}

// kept returns g with those targets of the list brought back whose last failures are the oldest, until no more are out than may be. A
// last failure may be the last request that was let through.
func (m *model) kept(g groupState, list []upstream.Target, sick int) []groupState {
	f := &m.w.plan.Upstream.Floors
	c := m.census(&g, list, -1)
	if f.MaxEjected == 1 || c.left > 0 && c.ejected <= f.mostEjected(c.all) {
		return []groupState{g}
	}
	var after []groupState
	for _, last := range []func(*health) time.Duration{func(h *health) time.Duration { return h.since }, func(h *health) time.Duration { return h.failed }} {
		oldest := -1
		for _, t := range list {
			i := m.targetIndex(t.Addr)
			if t.Down || g[i].sick || i == sick || !g[i].isOut(m.rules(t, len(list))) {
				continue
			}
			if oldest < 0 || last(&g[i]) < last(&g[oldest]) {
				oldest = i
			}
		}
		if oldest < 0 {
			return []groupState{g}
		}
		next := g
		next[oldest] = g[oldest].back(m.rulesIn(oldest, list)[0], m.at)
		if after = append(after, m.kept(next, list, sick)...); last(&g[oldest]) == g[oldest].failed {
			break
		}
	}
	return after
}

// forgotten returns the possible states when the targets are replaced: what is known of an address may be forgotten with it, if
// it has not failed.
func (m *model) forgotten(g groupState, list []upstream.Target) []groupState {
	after := []groupState{g}
	for i := range m.w.plan.Targets {
		if indexOf(list, m.w.plan.Targets[i].Addr) >= 0 || !g[i].mayBeForgotten() {
			continue
		}
		for _, also := range slices.Clone(after) {
			also[i] = health{}
			after = append(after, also)
		}
	}
	return after
}

// mayBeForgotten reports whether the health of an address that is removed need not be kept: successes alone count for a share.
func (h *health) mayBeForgotten() bool {
	for _, t := range h.rate {
		if t.failed > 0 {
			return false
		}
	}
	return !h.out && !h.sick && h.count == 0 && h.times == 0 && h.rate != failShare{}
}

// mayForget adds the states in which what is known of an address that is no target is forgotten.
func (l healths) mayForget() healths {
	for _, h := range slices.Clone(l) {
		if h.mayBeForgotten() && !slices.Contains(l, health{}) {
			l = append(l, health{})
		}
	}
	return l
}

// forget adds the states in which the health of an address is forgotten, which was removed a long time ago.
func (m *model) forget(addr string) {
	i := m.targetIndex(addr)
	for _, g := range slices.Clone(m.group) {
		if g[i] = (health{}); !slices.Contains(m.group, g) {
			m.group = append(m.group, g)
		}
	}
}
