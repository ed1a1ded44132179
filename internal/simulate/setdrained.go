package simulate

import (
	"slices"
	"time"
)

// addDrains chooses histories in which the program drains targets of the group and puts them back (Group.SetDrained), beside
// changes of the group's targets and their failures.
func (p *Plan) addDrains(c *Choices) {
	if !c.Bool(8) {
		return
	}
	for range 1 + c.Int(3) {
		at, target := someTime(c)*Pick(c, time.Duration(1), 4), c.Int(3)
		p.Changes = append(p.Changes, ChangePlan{At: at, Kind: DrainTarget, Arg: target})
		if !c.Bool(3) {
			p.Changes = append(p.Changes, ChangePlan{At: at + someTime(c), Kind: UndrainTarget, Arg: target})
		}
	}
	if c.Bool(2) {
		p.crowd(c)
	}
}

// drainsTargets reports whether targets of the group are drained during the history.
func (p *Plan) drainsTargets() bool {
	return slices.ContainsFunc(p.Changes, func(c ChangePlan) bool { return c.Kind == DrainTarget })
}

// setDrained drains a target of the plan, or puts it back. It fails only for an address that is no target of the group.
func (g *gateway) setDrained(i int, drained bool) {
	g.setting.Lock() // as for set
	defer g.setting.Unlock()
	addr := g.plan.Targets[i%len(g.plan.Targets)].Addr
	there := false
	for s := range g.group.Targets() {
		there = there || s.Target.Addr == addr
	}
	g.journal.Note("gateway", "%s drained: %v", addr, drained)
	if err := g.group.SetDrained(addr, drained); (err == nil) != there {
		g.journal.Break("drained", "SetDrained(%s): %v, a target of the group: %v", addr, err, there)
	} else if err != nil {
		return
	}
	g.journal.manners.Add("gateway: Group.SetDrained", 1)
	g.journal.noteGroup(groupEvent{kind: groupTargetDrained, addr: addr, good: !drained})
	for s := range g.group.Targets() {
		if s.Target.Addr == addr && (s.Drained != drained || drained && s.Healthy) {
			g.journal.Break("drained", "%s is drained: %v, its status is %+v", addr, drained, s)
		}
	}
}

// undrainAll puts all targets back, which are those of the group.
func (g *gateway) undrainAll() {
	for i := range g.plan.Targets {
		if g.plan.drainsTargets() {
			g.setDrained(i, false)
		}
	}
}

// drain follows SetDrained: from the model's view a drained target is a Down one. It is checked anew when it is back.
func (m *model) drain(e *groupEvent) {
	if m.drainedTargets == nil {
		m.drainedTargets = map[string]bool{}
	}
	was := m.drainedTargets[e.addr]
	m.drainedTargets[e.addr] = !e.good
	if i := indexOf(m.configuredTargets, e.addr); was && e.good && i >= 0 && !m.configuredTargets[i].Down {
		m.states[e.addr].checks.begin(m.at)
	}
	m.applyDrained()
}

// applyDrained makes the group's targets those that Group.Set has given, of which the drained ones are Down.
func (m *model) applyDrained() {
	m.targets = slices.Clone(m.configuredTargets)
	for i := range m.targets {
		t := &m.targets[i]
		t.Down = t.Down || m.drainedTargets[t.Addr]
	}
}

// checkDrained: a target that is drained, or Down, gets neither requests nor checks.
func (b *batch) checkDrained() {
	down := func(addr string) bool {
		before, after := indexOf(b.targets, addr), indexOf(b.m.targets, addr)
		return before >= 0 && after >= 0 && b.targets[before].Down && b.m.targets[after].Down
	}
	for _, l := range b.begins {
		if down(l.target) {
			b.m.fail("drained", "#%d is sent to %s, which is drained: %v, or Down", l.p.Token, l.target, b.m.drainedTargets[l.target])
		}
	}
	for _, e := range b.group {
		if e.kind == groupChecked && down(e.addr) {
			b.m.fail("drained", "%s is checked, which is drained: %v, or Down", e.addr, b.m.drainedTargets[e.addr])
		}
	}
}
