package simulate

import (
	"errors"
	"slices"
	"time"

	"github.com/culvert-go/culvert"
)

// read adds the events of a passage: its picks and its leases.
func (m *model) read(p *Passage) {
	if p.Picking == 0 {
		return // refused before
	}
	m.events = append(m.events, modelEvent{at: p.Picking, earn: true, sure: len(p.Attempts) > 0 || noPlace(p.Failure)})
	var tried []string
	began := p.Picking
	for i := range p.Attempts {
		a := &p.Attempts[i]
		l := &lease{p: p, attempt: i, target: a.Target, from: a.Began, to: a.Ended, outcome: m.outcome(p, i)}
		detached := m.w.plan.Gateway.Detach && a.Status == 101 && a.Err == nil
		switch {
		case detached && p.TunnelEnd == 0, a.Began == 0 || a.Ended < a.Began:
			m.unclear = true // not seen to its end
			return
		case detached:
			l.to = p.TunnelEnd
		}
		if i > 0 && m.dropped(&p.Attempts[i-1]) {
			l.from = p.Attempts[i-1].Began + p.Attempts[i-1].TimeToHeader // it was leased when the header was received
			began = l.from
		}
		m.addPick(&wait{p: p, attempt: i, from: began, to: l.from, tried: slices.Clone(tried), got: a.Target})
		m.events = append(m.events, modelEvent{at: l.from, begin: l}, modelEvent{at: l.to, end: l})
		tried = append(tried, a.Target)
		began = a.Ended
	}
	m.readFailure(p, began, tried)
	m.readCosts(p)
}

// readFailure adds the pick that got no target, if there was one.
func (m *model) readFailure(p *Passage, began time.Duration, tried []string) {
	switch {
	case p.FailedAt == 0:
	case len(p.Attempts) == 0 && p.FailedAt == p.Picking && !noPlace(p.Failure):
		// refused, or its client has gone
	case len(p.Attempts) == 0, p.FailedAt > began:
		// After an attempt the gateway may also have waited until the body was no longer read.
		maybe := len(p.Attempts) > 0 && p.Body
		m.addPick(&wait{p: p, attempt: len(p.Attempts), from: began, to: p.FailedAt, tried: slices.Clone(tried), maybe: maybe})
	}
}

// addPick adds a pick's events.
func (m *model) addPick(w *wait) {
	m.events = append(m.events, modelEvent{at: w.from, start: w}, modelEvent{at: w.to, done: w})
}

// noPlace reports whether a failure is that of a group without a free target.
func noPlace(e *culvert.Error) bool {
	return e != nil && (e.Kind == culvert.Busy || e.Kind == culvert.NoTarget)
}

// dropped reports whether an attempt's response was dropped for that of another target.
func (m *model) dropped(a *Attempt) bool {
	var e *culvert.Error
	return a.Err != nil && !errors.As(a.Err, &e) && m.w.plan.Gateway.RetryStatus && a.Status == 503
}

// outcome returns how an attempt counts for its target's health (upstream.Target.MaxFails, Options.FailStatuses,
// Options.FailLatency, proxy.Options.Timeout).
func (m *model) outcome(p *Passage, i int) step {
	a, e := &p.Attempts[i], (*culvert.Error)(nil)
	s := m.outcomeOf(p, i)
	if a.Err == nil || m.dropped(a) || !errors.As(a.Err, &e) {
		return s
	}
	if f := &m.w.plan.Upstream.Floors; (s == stepFail || s == stepUnclear) && !f.counts(e.Kind) {
		return stepNothing
	}
	return s
}

// outcomeOf is outcome where all kinds of failures count.
func (m *model) outcomeOf(p *Passage, i int) step {
	a, g, u := &p.Attempts[i], &m.w.plan.Gateway, &m.w.plan.Upstream
	var e *culvert.Error
	switch {
	case a.Err == nil, m.dropped(a):
		late := u.FailLatency > 0 && a.TimeToHeader >= u.FailLatency
		switch {
		case g.FailStatus && (a.Status == 500 || a.Status == 503):
			return stepFail
		case late && m.prompt(p, i, u.FailLatency):
			return stepSucceed
		case late && m.ofTheClient(p): // the client may have been sending, or accepting an interim response, for a part of the time
			return stepUnclear
		case late:
			return stepFail
		}
		return stepSucceed
	case !errors.As(a.Err, &e):
		if !u.Floors.counts(culvert.Unknown) {
			return stepNothing
		}
		return stepFail
	case e.ClientSide(), e.Kind == culvert.Internal:
		return stepNothing
	case e.Kind == culvert.Timeout && m.wholeTime(p, a):
		return m.blame(p, a)
	case e.Kind == culvert.Timeout && g.Transport && m.ofTheClient(p): // net/http's bounds the header meanwhile
		return stepUnclear
	}
	return stepFail
}

// ofTheClient reports whether the client may have used a part of an attempt's time.
func (m *model) ofTheClient(p *Passage) bool {
	e := m.w.exchanges[p.Token]
	return p.Body || e != nil && slices.ContainsFunc(e.Responses, func(r ResponsePlan) bool { return r.hasInterim() })
}

// wholeTime reports whether an attempt ended at the end of the whole exchange's time.
func (m *model) wholeTime(p *Passage, a *Attempt) bool {
	whole := m.w.plan.Gateway.Timeout
	return p.TimedOut || whole > 0 && a.Ended-p.Proxied >= whole
}

// blame: a target that had less than half of the time is not to blame for a timeout.
func (m *model) blame(p *Passage, a *Attempt) step {
	switch had := a.Ended - a.Began; {
	case m.ofTheClient(p) || p.Upgrade:
		return stepUnclear
	case 2*had < a.Ended-p.Proxied:
		return stepNothing
	}
	return stepFail
}
