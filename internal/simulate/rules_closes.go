package simulate

import (
	"errors"
	"syscall"
)

// closes: a request has "Connection: close" only if it is the last one of its connection (upstream.Options.MaxConnRequests),
// and not because an earlier attempt was. By RoundTrip of a Transport whose connections name their clients each one is
// (Options.ProxyProtocol).
func (r *ruler) closes() {
	most := r.w.plan.Gateway.MaxConnRequests
	if r.w.plan.Gateway.Introduces != 0 && r.byTransport() {
		return
	}
	for _, s := range r.sights {
		if said := s.Header.Get("Connection") == "close"; said && (most == 0 || most > 1 && !s.Kept) {
			r.fail("close", "%s saw close in a request on a connection kept %v, MaxConnRequests is %d", s.Target, s.Kept, most)
		}
	}
}

// vain: a target is not to blame for a response that it has ended and that its client has received as a whole.
func (t *times) vain() {
	o, sights := t.w.journal.outcomes[t.p.Token], t.w.journal.sights[t.p.Token]
	if o == nil || !o.Whole || o.ByClose || t.p.Failure == nil || t.p.Upgrade || t.p.Body || len(sights) != 1 || len(t.p.Attempts) != 1 {
		return
	}
	if errors.Is(t.p.Failure, syscall.ECONNRESET) {
		return // the end of its stream was lost with the connection
	}
	if s := sights[0]; o.Attempt == 0 && s.Responded && s.Odd == nil && t.p.Failure.TargetSide() {
		t.fail(t.p.FailedAt, "%s is to blame for a response that its client has seen whole: %v", s.Target, t.p.Failure)
	}
}
