package simulate

import (
	"slices"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/upstream"
)

// batch holds the events of one instant.
type batch struct {
	m       *model
	before  []*wait           // that waited
	targets []upstream.Target // before
	free    map[string]bool   // surely, right before
	running int               // before
	saved   float64           // retries that the budget has for certain, before

	begins, ends  []*lease
	starts, dones []*wait
	group         []*groupEvent
	lists         [][]upstream.Target // the targets before, and after each replacement
	looks         []*sample
	costs         []*Passage // requests that have perhaps spent a retry for which there was no target
}

// add adds an event.
func (b *batch) add(e modelEvent) {
	switch {
	case e.group != nil:
		b.group = append(b.group, e.group)
	case e.begin != nil:
		b.begins = append(b.begins, e.begin)
	case e.end != nil:
		b.ends = append(b.ends, e.end)
	case e.start != nil:
		b.starts = append(b.starts, e.start)
	case e.done != nil:
		b.dones = append(b.dones, e.done)
	case e.look != nil:
		b.looks = append(b.looks, e.look)
	case e.earn:
		b.m.budget.earn(e.at, e.sure)
	case e.cost != nil:
		b.costs = append(b.costs, e.cost)
	}
}

// follow checks the events and updates the model.
func (b *batch) follow() {
	m := b.m
	b.running = m.running()
	m.waits = slices.DeleteFunc(append(m.waits, b.starts...), func(w *wait) bool { return slices.Contains(b.dones, w) })
	m.leases = slices.DeleteFunc(append(m.leases, b.begins...), func(l *lease) bool { return slices.Contains(b.ends, l) })
	for _, w := range b.starts {
		if w.attempt > 0 && w.got != "" {
			m.budget.spend(m, w)
		}
	}
	for range b.costs {
		m.budget.cost()
	}
	b.set()
	b.followHealth()
	b.checkPlaces()
	b.checkDrained()
	for _, w := range b.dones {
		b.checkPick(w)
	}
	b.waitAnew()
	b.checkOrder()
	b.checkDrain()
	b.checkDue()
	if len(b.begins)+len(b.ends)+len(b.starts)+len(b.dones)+len(b.group) == 0 {
		for _, s := range b.looks {
			m.compare(s)
		}
	}
}

// memory is how long a group remembers the state of a target that was removed, "soon" in Group.Set.
const memory = 10 * time.Minute

// set replaces the model's targets by the group's new ones.
func (b *batch) set() {
	m := b.m
	b.lists = [][]upstream.Target{m.targets}
	for _, e := range b.group {
		if e.kind == groupTargetDrained {
			m.drain(e)
			b.lists = append(b.lists, m.targets)
		}
		if e.kind != groupSet {
			continue
		}
		for _, t := range m.targets {
			m.states[t.Addr].left = m.at
		}
		for _, t := range e.targets {
			s := m.states[t.Addr]
			if s == nil {
				s = &modelTarget{health: healths{{}}}
				m.states[t.Addr] = s
			}
			if indexOf(m.targets, t.Addr) < 0 {
				s.checks.begin(m.at)
				if s.left > 0 && m.at-s.left >= memory {
					m.unclear = m.unclear || m.drainedTargets[t.Addr] // it may be drained or not
					s.health = append(s.health, health{})
					m.forget(t.Addr)
					s.checks.unsure = true
				}
			}
			s.left = 0
		}
		for addr, s := range m.states {
			if indexOf(e.targets, addr) < 0 {
				s.health = s.health.mayForget()
			}
		}
		m.configuredTargets = e.targets
		m.applyDrained()
		b.lists = append(b.lists, m.targets)
	}
}

// changed reports whether the targets were replaced, or one of them was drained or put back, at this instant.
func (b *batch) changed() bool {
	return slices.ContainsFunc(b.group, func(e *groupEvent) bool { return e.kind == groupSet || e.kind == groupTargetDrained })
}

// rules returns the options of a target at this instant, before and after Set.
func (b *batch) rules(addr string) (list []rulesOf) {
	for _, targets := range [][]upstream.Target{b.targets, b.m.targets} {
		for _, t := range targets {
			if r := b.m.rules(t, len(targets)); t.Addr == addr && !slices.Contains(list, r) {
				list = append(list, r)
			}
		}
	}
	return list
}

// touched reports whether an event of this instant concerns a target, so that it may not have been free at each time of
// the instant.
func (b *batch) touched(addr string) bool {
	of := func(l *lease) bool { return l.target == addr }
	return b.changed() || slices.ContainsFunc(b.begins, of) || slices.ContainsFunc(b.ends, of) ||
		slices.ContainsFunc(b.group, func(e *groupEvent) bool { return e.addr == addr })
}

// followHealth updates the health of each target.
func (b *batch) followHealth() {
	joint := b.m.w.plan.Upstream.Floors.joint()
	var steps []groupStep
	for addr, s := range b.m.states {
		if !b.touched(addr) {
			continue
		}
		own, before := b.steps(addr, s)
		if slices.Contains(own, stepPick) && len(b.rules(addr)) == 0 {
			b.m.fail("set", "%s gets a request, and is no target", addr)
			b.m.unclear = true
			return
		}
		if !joint {
			b.followTarget(addr, s, own, before)
			continue
		}
		first, i := len(steps), b.m.targetIndex(addr)
		for n, k := range own {
			if before[n] >= 0 {
				before[n] += first
			}
			steps = append(steps, groupStep{k, i, before[n]})
		}
	}
	if joint {
		last := -1
		for range b.lists[1:] {
			steps = append(steps, groupStep{target: -1, before: last})
			last = len(steps) - 1
		}
		b.m.followGroup(steps, b.lists)
	}
}

// steps returns the events of a target, each with the one that must come before it, -1 for none.
func (b *batch) steps(addr string, s *modelTarget) (steps []step, before []int) {
	index := map[*lease]int{}
	for _, l := range b.begins {
		if l.target == addr {
			index[l] = len(steps)
			steps, before = append(steps, stepPick), append(before, -1)
			s.inFlight++
		}
	}
	for _, l := range b.ends {
		if l.target == addr {
			at, ok := index[l]
			if !ok {
				at = -1
			}
			steps, before = append(steps, l.outcome), append(before, at)
			s.inFlight--
		}
	}
	for _, k := range s.checks.follow(b.m, addr, b.group) {
		steps, before = append(steps, k), append(before, -1)
	}
	return steps, before
}

// followTarget updates the health of a target that is its own.
func (b *batch) followTarget(addr string, s *modelTarget, steps []step, before []int) {
	m := b.m
	rules := b.rules(addr)
	switch {
	case len(steps) == 0:
		return
	case len(steps) > 8:
		m.unclear = true
		return
	case len(rules) == 0:
		// A target that was removed, as it was configured.
		rules = []rulesOf{m.rules(m.configured(addr), 1), m.rules(m.configured(addr), 2)}
	}
	after := s.health.follow(steps, before, rules, m.at)
	if len(after) == 0 {
		m.fail("health", "%s gets a request while it is out: %+v", addr, s.health)
		m.unclear = true
		return
	}
	s.health = after
}

// configured returns the options of any target of the plan.
func (m *model) configured(addr string) upstream.Target {
	for i := range m.w.plan.Targets {
		if m.w.plan.Targets[i].Addr == addr {
			return m.w.plan.target(i)
		}
	}
	return upstream.Target{}
}

// checkPlaces: no target has more requests than its MaxConns, and a backup gets a request only if no other target is free.
func (b *batch) checkPlaces() {
	m := b.m
	for _, t := range m.targets {
		if n, most := m.states[t.Addr].inFlight, b.most(t.Addr); most > 0 && n > most && b.began(t.Addr) {
			m.fail("places", "%s gets a request and has %d, MaxConns is %d", t.Addr, n, most)
		}
	}
	for _, w := range b.dones {
		if i := indexOf(m.targets, w.got); i < 0 || !m.targets[i].Backup {
			continue
		}
		for _, t := range m.targets {
			if !t.Backup && b.free[t.Addr] && !b.touched(t.Addr) && !slices.Contains(w.tried, t.Addr) {
				m.fail("backup", "#%d gets the backup %s while %s is free", w.p.Token, w.got, t.Addr)
			}
		}
	}
}

func indexOf(targets []upstream.Target, addr string) int {
	return slices.IndexFunc(targets, func(t upstream.Target) bool { return t.Addr == addr })
}

// checkPick checks the end of a pick.
func (b *batch) checkPick(w *wait) {
	m := b.m
	took, bound := w.to-w.from, m.w.plan.Upstream.queueTimeout()
	most := bound
	if w.attempt > 0 {
		most = 2 * bound // another target, and then the last one again (proxy.Retry)
	}
	if took > most {
		m.fail("queue timeout", "#%d has waited for %v, QueueTimeout is %v", w.p.Token, took, bound)
	}
	if w.p.Lists != 0 && took > 0 {
		m.fail("queue", "#%d has waited for %v, and is the list of a watch that holds its place", w.p.Token, took)
	}
	if w.attempt > 0 {
		return
	}
	if w.got != "" {
		if m.drained && took == 0 && len(b.group) == 0 {
			m.fail("drain", "#%d gets a target after Drain", w.p.Token)
		}
		return
	}
	switch e := w.p.Failure; {
	case e.Kind == culvert.Busy && took > 0 && took != bound:
		m.fail("queue timeout", "#%d was refused after %v, QueueTimeout is %v", w.p.Token, took, bound)
	case e.Kind == culvert.Busy && took == 0:
		b.checkRefusal(w)
	case e.Kind == culvert.NoTarget:
		b.checkNoTarget(w)
	}
}

// checkRefusal: a request is refused only if the group drains, has reached MaxInFlight, or has neither a free target nor a
// place in its queue. The list of a resumed watch does not wait.
func (b *batch) checkRefusal(w *wait) {
	m, g := b.m, &b.m.w.plan.Gateway
	others := b.running + len(b.starts) - 1
	switch {
	case m.drained, g.MaxInFlight > 0 && others >= g.MaxInFlight:
		return
	case w.p.Lists == 0 && len(b.before)+len(b.starts)-1 < g.Queue:
		m.fail("refused", "#%d was refused while %d wait, the queue has room for %d", w.p.Token, len(b.before), g.Queue)
	}
	for addr, free := range b.free {
		if free && !b.touched(addr) {
			m.fail("refused", "#%d was refused while %s is free", w.p.Token, addr)
		}
	}
}

// checkNoTarget: a request gets no target only if all are unhealthy.
func (b *batch) checkNoTarget(w *wait) {
	m := b.m
	for _, t := range m.targets {
		if !b.touched(t.Addr) && m.surelyHealthy(t, m.at-tick) {
			m.fail("no target", "#%d gets none though %s is healthy", w.p.Token, t.Addr)
		}
	}
}

// checkOrder: no request overtakes one that waits.
func (b *batch) checkOrder() {
	m := b.m
	if b.changed() {
		return
	}
	for _, waiting := range m.surelyWaiting() {
		for _, w := range b.dones {
			if w.got != "" && w.from > waiting.last() && !slices.Contains(waiting.tried, w.got) {
				m.fail("order", "#%d gets %s before #%d, which waits since %v", w.p.Token, w.got, waiting.p.Token, waiting.last())
			}
		}
	}
}

// checkDrain: Drain returns when the last request has ended.
func (b *batch) checkDrain() {
	m := b.m
	for _, e := range b.group {
		switch e.kind {
		case groupDrain:
			m.drained = true
		case groupDrained:
			if n := len(m.leases) + len(m.surelyWaiting()); n > 0 {
				m.fail("drain", "Drain returns while %d requests are in flight", n)
			} else if len(b.ends)+len(b.dones) == 0 && !slices.ContainsFunc(b.group, func(e *groupEvent) bool { return e.kind == groupDrain }) {
				m.fail("drain", "Drain returns some time after the last request has ended")
			}
		}
	}
}

// compare compares the state that the group reports with the model.
func (m *model) compare(s *sample) {
	least, most := len(m.surelyWaiting()), len(m.waits)
	if n := len(m.leases); s.waiting < least || s.waiting > most || s.inFlight < least+n || s.inFlight > most+n {
		m.fail("status", "the group says that %d requests wait and %d are in flight, the model %d to %d and %d more", s.waiting, s.inFlight, least, most, n)
	}
	if len(s.targets) != len(m.targets) {
		m.fail("status", "the group has %d targets, the model %d", len(s.targets), len(m.targets))
		return
	}
	for i, got := range s.targets {
		t := m.targets[i]
		state, r := m.states[t.Addr], m.rules(t, len(m.targets))
		if m.w.plan.Gateway.Check && !t.Down {
			state.checks.overdue(m, t.Addr)
		}
		if got.Drained != m.drainedTargets[t.Addr] {
			m.fail("status", "%s says drained %v", t.Addr, got.Drained)
		}
		if got.InFlight != state.inFlight {
			m.fail("status", "%s says that it has %d requests, the model %d", t.Addr, got.InFlight, state.inFlight)
		}
		agrees := func(h health) bool {
			return h.healthy(r, m.at) == got.Healthy && h.fails(r, m.at) == got.Fails && h.isOut(r) == got.Ejected && h.sick == got.Unhealthy
		}
		if !t.Down && !slices.ContainsFunc(state.health, agrees) {
			m.fail("status", "%s says healthy %v, ejected %v, unhealthy %v, %d failures; the model %+v", t.Addr, got.Healthy, got.Ejected, got.Unhealthy, got.Fails, state.health)
		}
	}
}
