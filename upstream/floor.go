package upstream

// eject takes m out, unless that would leave the group without an available target or
// exceed Options.MaxEjected.
func (g *Group) eject(m *member, at int64) {
	g.floor.Lock()
	defer g.floor.Unlock()
	if g.mayEject(m) {
		good := (at - m.backAt.Load()) / max(1, int64(m.FailTimeout))
		m.ejections.Store(max(0, m.ejections.Load()-good) + 1)
		m.out.Store(true)
		g.setPanicking(g.set.Load())
	}
}

// mayEject reports whether failures may take m out. The caller holds g.floor.
func (g *Group) mayEject(m *member) bool {
	s := g.set.Load()
	if g.o.MaxEjected == 1 || !s.has(m.state) {
		return true
	}
	return s.census(m.state, nil).within(g.o.MaxEjected)
}

// replace makes s the group's set.
func (g *Group) replace(s *targets) {
	g.floor.Lock()
	defer g.floor.Unlock()
	g.keepFloor(s, nil)
	g.setPanicking(s)
	g.set.Store(s)
}

// markUnhealthy takes the address of st out of use, since its checks have failed.
func (g *Group) markUnhealthy(st *state) {
	g.floor.Lock()
	defer g.floor.Unlock()
	g.keepFloor(g.set.Load(), st) // before: there is a target for a request at any time
	st.unhealthy.Store(true)
	g.setPanicking(g.set.Load())
}

// recount follows a change of the health of a member that may be available again.
func (g *Group) recount() {
	g.floor.Lock()
	defer g.floor.Unlock()
	g.setPanicking(g.set.Load())
}

// setPanicking sets whether the health of the members of s counts. The caller holds g.floor.
func (g *Group) setPanicking(s *targets) {
	if g.o.PanicThreshold > 0 {
		c := s.census(nil, nil)
		s.panicking.Store(float64(c.left) < g.o.PanicThreshold*float64(c.all)-rounding)
	}
}

// keepFloor brings back the members of s whose last failures are the oldest, until no more are out than may be
// when st, if it is not nil, is unhealthy. The caller holds g.floor.
func (g *Group) keepFloor(s *targets, st *state) {
	if g.o.MaxEjected == 1 {
		return
	}
	for {
		c := s.census(nil, st)
		if c.oldest == nil || c.within(g.o.MaxEjected) {
			return
		}
		c.oldest.bringBack()
	}
}

// census counts the members of a set that are not Down.
type census struct {
	all     int
	ejected int     // taken out by failures
	left    int     // available
	oldest  *member // the one with the oldest last failure of those that only failures have taken out; nil for none
}

// census counts the members of s as if failures had taken ejected out and the checks of unhealthy had failed.
// Both may be nil.
func (s *targets) census(ejected, unhealthy *state) (c census) {
	for _, m := range s.members {
		if m.isDown() {
			continue
		}
		c.all++
		sick := m.unhealthy.Load() || m.state == unhealthy
		switch {
		case m.state == ejected || m.failing():
			c.ejected++
			if !sick && (c.oldest == nil || m.checked.Load() < c.oldest.checked.Load()) {
				c.oldest = m
			}
		case !sick:
			c.left++
		}
	}
	return c
}

// rounding is more than the error of a share of a set, and less than one member: 0.29*100 is less than 29.
const rounding = 1e-9

// within reports whether failures may have taken that many members out, by Options.MaxEjected.
func (c census) within(maxEjected float64) bool {
	return c.left > 0 && (maxEjected == 0 || c.ejected <= max(1, int(maxEjected*float64(c.all)+rounding)))
}
