package simulate

import "time"

// checkCount counts the checks of one target as upstream.Check documents it: Fall bad checks in a row take it out, Rise
// good ones bring it back. A check without a response is not observed. The time between two that are observed, and the
// interval, bound how many there may have been.
type checkCount struct {
	last      time.Duration // the last check that was observed, or when the target was added
	fresh     bool          // no check was observed
	good, bad span          // in a row
	sick      bool
	unsure    bool          // sick may be wrong: the target was added again after a long time
	goodAt    time.Duration // the last good check
}

// span is a number of which only the bounds are known.
type span struct{ least, most int }

// begin is called when a target is added.
func (c *checkCount) begin(at time.Duration) {
	c.last, c.fresh, c.good, c.bad = at, true, span{}, span{}
}

// unseen returns how many checks have ended since the last observed one, at or before at.
func (c *checkCount) unseen(p *Plan, at time.Duration) span {
	least, most := p.checkBounds()
	passed := at - c.last
	if c.fresh { // the first one comes within the jitter
		first := p.checkJitter() + checkTimeout
		s := span{most: 1 + int(passed/least)}
		if passed > first {
			s.least = 1 + int((passed-first)/most)
		}
		return s
	}
	return span{int(passed / (most + time.Microsecond)), int((passed + time.Microsecond) / least)}
}

// follow returns the changes of health by the events of an instant, and checks that they are due.
func (c *checkCount) follow(m *model, addr string, events []*groupEvent) (steps []step) {
	u := &m.w.plan.Upstream
	for _, e := range events {
		if e.addr != addr || e.kind != groupChecked && e.kind != groupRaised {
			continue
		}
		n := c.unseen(m.w.plan, m.at) // this one included
		n.least, n.most = max(0, n.least-1), max(0, n.most-1)
		if n.least > 0 {
			c.good = span{}
		} else if n.most > 0 {
			c.good.least = 0
		}
		c.bad = span{c.bad.least + n.least, c.bad.most + n.most}
		if !c.sick && !c.unsure && c.bad.least >= u.fall() {
			m.fail("checks", "%s has failed %d to %d checks in a row and was not taken out", addr, c.bad.least, c.bad.most)
		}
		switch {
		case e.kind == groupRaised: // which counts neither way
		case e.good:
			c.good, c.bad, c.goodAt = span{c.good.least + 1, c.good.most + 1}, span{}, m.at
		default:
			c.good, c.bad = span{}, span{c.bad.least + 1, c.bad.most + 1}
		}
		c.last, c.fresh = m.at, false
	}
	for _, e := range events {
		if e.addr != addr || e.kind != groupChanged {
			continue
		}
		if e.good {
			steps = append(steps, c.back(m, addr))
		} else {
			steps = append(steps, c.out(m, addr))
		}
	}
	if c.sick && !c.unsure && c.good.least >= u.rise() {
		m.fail("checks", "%s has passed %d checks and was not brought back", addr, c.good.least)
	}
	return steps
}

// back is called where a check brings the target back.
func (c *checkCount) back(m *model, addr string) step {
	if n := m.w.plan.Upstream.rise(); c.goodAt != m.at || c.good.most < n || !c.sick && !c.unsure {
		m.fail("checks", "%s was brought back after %d to %d good checks, Rise is %d", addr, c.good.least, c.good.most, n)
	}
	c.sick, c.unsure = false, false
	return stepWell
}

// out is called where a check takes the target out.
func (c *checkCount) out(m *model, addr string) step {
	u := &m.w.plan.Upstream
	n := c.unseen(m.w.plan, m.at)
	seen := c.last == m.at && !c.fresh // the check that has taken it out; the first one of a target may end when it comes
	if seen {
		n = span{}
	}
	if fall := u.fall(); c.bad.least+n.least > fall || c.bad.most+n.most < fall || c.sick && !c.unsure || c.goodAt == m.at {
		m.fail("checks", "%s was taken out after %d to %d bad checks, Fall is %d", addr, c.bad.least+n.least, c.bad.most+n.most, fall)
	}
	c.sick, c.unsure = true, false
	if !seen {
		c.good, c.bad = span{}, span{c.bad.least + n.least, c.bad.most + n.most}
		c.last, c.fresh = m.at, false
	}
	return stepSick
}

// overdue: a target whose checks have failed Fall times is out.
func (c *checkCount) overdue(m *model, addr string) {
	u := &m.w.plan.Upstream
	if n := c.unseen(m.w.plan, m.at-tick); !c.sick && !c.unsure && c.bad.least+n.least >= u.fall() {
		m.fail("checks", "%s has failed %d checks and was not taken out", addr, c.bad.least+n.least)
	}
}
