package simulate

import (
	"cmp"
	"slices"
	"time"

	"github.com/culvert-go/culvert/upstream"
)

// model is a group of targets as its documentation describes it. It follows what was observed of the gateway from outside,
// in virtual time, and finds what must not have happened. Events of one instant have no order.
type model struct {
	w       *world
	events  []modelEvent
	waits   []*wait
	leases  []*lease
	unclear bool // something was not observed, so nothing that follows can be checked

	targets  []upstream.Target // of the group, of which the drained ones are Down
	states   map[string]*modelTarget
	group    []groupState // where the health of a target depends on that of others
	drained  bool
	budget   *modelBudget
	at, last time.Duration

	configuredTargets []upstream.Target // as Group.Set was called with them
	drainedTargets    map[string]bool   // by address
}

// modelTarget is one address.
type modelTarget struct {
	health   healths
	inFlight int
	left     time.Duration // when it was taken out of the group's targets; 0: it is one of them
	checks   checkCount
}

// lease is a request that a target serves.
type lease struct {
	p        *Passage
	attempt  int
	target   string
	from, to time.Duration
	outcome  step
}

// wait is a pick: it may take time if the group has a queue.
type wait struct {
	p        *Passage
	attempt  int // the one that follows it
	from, to time.Duration
	tried    []string
	got      string // the target, "" for none
	maybe    bool   // the time may have passed elsewhere

	anew    time.Duration // the last moment at which the wait may have begun again, 0 for none
	settled bool          // the wait does not begin again
}

// modelEvent is something that has happened.
type modelEvent struct {
	at    time.Duration
	group *groupEvent // or:
	begin *lease
	end   *lease
	start *wait
	done  *wait
	look  *sample
	earn  bool // a request
	sure  bool // which has earned a share of a retry, or it may have
	cost  *Passage
}

// groupEvent is something that happened to the group.
type groupEvent struct {
	at      time.Duration
	kind    groupEventKind
	targets []upstream.Target
	addr    string
	good    bool
}

type groupEventKind int

const (
	groupSet groupEventKind = iota
	groupDrain
	groupDrained
	groupChecked       // Check.Healthy was called
	groupChanged       // Check.OnChange was called
	groupTargetDrained // Group.SetDrained was called, to put it back if it is good
	groupRaised        // Check.Healthy was called, and has panicked
)

// sample is the state that the group reports at a moment.
type sample struct {
	at                time.Duration
	targets           []upstream.Status
	inFlight, waiting int
}

// noteGroup adds a groupEvent.
func (j *Journal) noteGroup(e groupEvent) {
	j.mu.Lock()
	defer j.mu.Unlock()
	e.at = j.now()
	j.events = append(j.events, e)
}

// sampleGroup records the state that the group reports.
func (w *world) sampleGroup() {
	g := w.gateway.population()
	s := sample{at: w.journal.now(), inFlight: g.InFlight(), waiting: g.Waiting(), targets: slices.Collect(g.Targets())}
	w.journal.mu.Lock()
	defer w.journal.mu.Unlock()
	w.journal.samples = append(w.journal.samples, s)
}

// fail records a broken rule. The caller holds the journal's mutex.
func (m *model) fail(rule, format string, args ...any) {
	m.w.journal.breakAt(m.at, rule, format, args...)
}

// checkModel lets a model follow the history. The caller holds the journal's mutex.
func (w *world) checkModel() {
	m := &model{w: w, states: map[string]*modelTarget{}, budget: newModelBudget(&w.plan.Gateway)}
	for _, p := range w.journal.passages {
		m.read(p)
	}
	j := w.journal
	for i := range j.events {
		m.events = append(m.events, modelEvent{at: j.events[i].at, group: &j.events[i]})
	}
	for i := range j.samples {
		m.events = append(m.events, modelEvent{at: j.samples[i].at, look: &j.samples[i]})
	}
	slices.SortStableFunc(m.events, func(a, b modelEvent) int { return cmp.Compare(a.at, b.at) })
	for len(m.events) > 0 && !m.unclear {
		n := 1
		for n < len(m.events) && m.events[n].at == m.events[0].at {
			n++
		}
		m.instant(m.events[:n])
		m.events = m.events[n:]
	}
	m.end()
}

// instant follows the events of one instant.
func (m *model) instant(events []modelEvent) {
	m.at = events[0].at
	m.between()
	before := slices.Clone(m.waits)
	m.budget.pass(m.at)
	b := batch{m: m, before: before, targets: m.targets, free: m.freeBefore(), saved: m.budget.least}
	for _, e := range events {
		b.add(e)
	}
	b.follow()
	m.last = m.at
}

// Events that are closer than this belong to one instant: what the gateway does at once may be observed a nanosecond later.
const tick = 2 * time.Nanosecond

// between checks the time from the last instant to this one, in which nothing has happened.
func (m *model) between() {
	if m.at-m.last <= 2*tick {
		return
	}
	waiting := m.surelyWaiting()
	if n, most := len(waiting), m.w.plan.Gateway.Queue; n > most {
		m.fail("queue", "%d requests wait, the queue has room for %d", n, most)
	}
	if n, most := len(waiting)+len(m.leases), m.w.plan.Gateway.MaxInFlight; most > 0 && n > most {
		m.fail("in flight", "%d requests are in flight, MaxInFlight is %d", n, most)
	}
	for _, w := range waiting {
		for _, t := range m.targets {
			if !slices.Contains(w.tried, t.Addr) && m.surelyFree(t, m.at-tick) {
				m.fail("waits", "#%d waits since %v while %s is free", w.p.Token, w.from, t.Addr)
				return
			}
		}
	}
}

// surelyFree reports whether t may get a request at a moment, in any order of the events of one instant.
func (m *model) surelyFree(t upstream.Target, at time.Duration) bool {
	s := m.states[t.Addr]
	return !t.Down && (t.MaxConns == 0 || s.inFlight < t.MaxConns) && m.surelyHealthy(t, at)
}

func (m *model) surelyHealthy(t upstream.Target, at time.Duration) bool {
	r := m.rules(t, len(m.targets))
	return !t.Down && m.states[t.Addr].health.all(func(h health) bool { return h.available(r, at) })
}

// freeBefore returns the targets that are surely free right before this instant.
func (m *model) freeBefore() map[string]bool {
	free := map[string]bool{}
	for _, t := range m.targets {
		free[t.Addr] = m.surelyFree(t, m.at-tick)
	}
	return free
}

// surelyWaiting returns the picks that have begun and not ended.
func (m *model) surelyWaiting() []*wait {
	return slices.DeleteFunc(slices.Clone(m.waits), func(w *wait) bool { return w.maybe })
}

// running returns the most requests and tunnels that may be in flight, including those that wait.
func (m *model) running() int { return len(m.waits) + len(m.leases) }

// end checks the state at the end of the history.
func (m *model) end() {
	if m.unclear {
		m.w.journal.unclear = true
		return
	}
	for _, t := range m.targets {
		if s := m.states[t.Addr]; s.inFlight != 0 {
			m.fail("in flight", "%s has %d requests when all have ended", t.Addr, s.inFlight)
		}
	}
}
