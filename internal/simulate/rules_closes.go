package simulate

import "slices"

import (
	"errors"
	"syscall"
)

// closes: a request says "Connection: close" where it is the last one of its connection (upstream.Options.MaxConnRequests),
// and not since another attempt was.
func (r *ruler) closes() {
	most := r.w.plan.Gateway.MaxConnRequests
	for _, s := range r.sights {
		if said := s.Header.Get("Connection") == "close"; said && (most == 0 || most > 1 && !s.Kept) {
			r.fail("close", "%s saw close in a request on a connection kept %v, MaxConnRequests is %d", s.Target, s.Kept, most)
		}
	}
}

// vain: a target is not to blame for a response that it has ended and that its client has seen whole.
func (t *times) vain() {
	o, sights := t.w.journal.outcomes[t.p.Token], t.w.journal.sights[t.p.Token]
	if o == nil || !o.Whole || o.ByClose || t.p.Failure == nil || t.p.Upgrade || t.p.Body || len(sights) != 1 || len(t.p.Attempts) != 1 {
		return
	}
	if errors.Is(t.p.Failure, syscall.ECONNRESET) {
		return // the end of its stream was lost with the connection
	}
	if s := sights[0]; o.Attempt == 0 && s.Responded && s.Odd == nil && t.p.Failure.TargetSide() && !t.mayLoseEnd(s) {
		t.fail(t.p.FailedAt, "%s is to blame for a response that its client has seen whole: %v", s.Target, t.p.Failure)
	}
}

// mayLoseEnd reports whether a link may have ended between a response's content and its end, which is a frame of its own
// over HTTP/2, or paused there for longer than the gateway waits: the response is not whole then (RFC 9113 section 8.1),
// though its client may count as many bytes as it has.
func (t *times) mayLoseEnd(s *Sight) bool {
	if !t.g.H2Targets {
		return false
	}
	if t.w.plan.Upstream.resets() {
		return true
	}
	for i := range t.w.plan.Targets {
		target := &t.w.plan.Targets[i]
		resets := func(f Fault) bool { return f.Kind == FaultReset } // both directions
		ends := func(f Fault) bool {
			return f.Kind == FaultFIN || f.Kind == FaultSilence || f.Kind == FaultPause && f.Pause >= t.g.shortest() || resets(f)
		}
		if target.Addr == s.Target && (slices.ContainsFunc(target.Links.Back, ends) || slices.ContainsFunc(target.Links.There, resets)) {
			return true
		}
	}
	return false
}
