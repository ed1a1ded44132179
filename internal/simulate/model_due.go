package simulate

import (
	"errors"
	"slices"

	"github.com/culvert-go/culvert"
)

// readCosts adds an event if a request may have held a retry of the budget after its last attempt, without one that was
// observed: no target may have been free.
func (m *model) readCosts(p *Passage) {
	if len(p.Attempts) == 0 {
		return
	}
	a := &p.Attempts[len(p.Attempts)-1]
	switch {
	case a.Err != nil:
		m.events = append(m.events, modelEvent{at: a.Ended, cost: p})
	case m.w.plan.Gateway.RetryStatus && a.Status == 503:
		m.events = append(m.events, modelEvent{at: a.Began + a.TimeToHeader, cost: p})
	}
}

// checkDue: a request whose target could not be dialled is sent to another target that is free (proxy.Retry), as long as
// the budget permits it.
func (b *batch) checkDue() {
	if len(b.costs) != 1 || len(b.starts)+len(b.before)+len(b.group) > 0 || !b.unsent(b.costs[0]) {
		return
	}
	m, p := b.m, b.costs[0]
	for _, t := range m.targets {
		tried := slices.ContainsFunc(p.Attempts, func(a Attempt) bool { return a.Target == t.Addr })
		switch {
		case tried || !b.free[t.Addr] || b.touched(t.Addr):
		case m.budget.on && b.saved < 1.001:
			m.w.journal.manners.Add("gateway: a retry that the budget may refuse", 1)
			return
		default:
			m.fail("due", "#%d could not be sent to %s and is not sent to %s, which is free; the budget has %.3f retries", p.Token, p.Attempts[len(p.Attempts)-1].Target, t.Addr, b.saved)
			return
		}
	}
}

// unsent reports whether a request without a body has failed by its last attempt since the target could not be dialled,
// and its client still waits, within its time.
func (b *batch) unsent(p *Passage) bool {
	w, g := b.m.w, &b.m.w.plan.Gateway
	a, e := &p.Attempts[len(p.Attempts)-1], (*culvert.Error)(nil)
	o, c := w.journal.outcomes[p.Token], w.clientOf(p.Token)
	switch {
	case !errors.As(a.Err, &e) || e.BytesSent || e.Kind != culvert.DialFailed && e.Kind != culvert.Timeout:
		return false
	case p.FailedAt != a.Ended || p.TimedOut || p.Upgrade || p.Body || p.DialPanicked:
		return false
	case o == nil || c == nil || o.LeftAlone || c.Pipelined || c.Kind == Malformed || len(c.Links.There)+len(c.Links.Back) > 0:
		return false
	case w.exchanges[p.Token].HalfClose || o.Ended.Sub(w.journal.start) < a.Ended:
		return false
	}
	return (g.Tries == 0 || len(p.Attempts) < g.Tries) && g.MaxInFlight == 0 && !b.m.drained
}
