package simulate

import "time"

// addStreamed chooses histories in which the header of a request is sent before its body was received (proxy.Options.StreamRequest).
// Some of their clients never send all of it.
func (p *Plan) addStreamed(c *Choices) {
	if !c.Bool(8) {
		return
	}
	p.Gateway.Streams = true
	p.ordinary(c, func(_ ClientKind, e *ExchangePlan) {
		if e.Body.Length > 0 && c.Bool(2) {
			e.Body.silent(c)
		}
	})
}

// streamed: with Options.StreamRequest the target of an attempt sees the request, though its body is not there.
func (t *times) streamed(a *Attempt) {
	g := t.g
	if !g.Streams || g.RequestBuffer != 0 || g.H2Targets || g.Transport || !t.p.Body || t.p.Upgrade || t.e.Broken || g.Hedge > 0 {
		return
	}
	connected := a.Began + a.TimeToConnect
	if a.TimeToConnect == 0 || a.Ended < connected+slack || t.w.targetFails(a.Target) {
		return
	}
	for _, s := range t.w.journal.sights[t.p.Token] {
		if s.Target == a.Target && s.At.Sub(t.w.journal.start) < connected+slack {
			t.w.journal.manners.Add("target: a request whose body may still be sent", 1)
			return
		}
	}
	t.w.journal.breakAt(a.Ended, "streamed", "#%d: %s was connected for %v, and has not seen the request", t.p.Token, a.Target, a.Ended-connected)
}

// targetFails reports whether a target, or its link, may lose what it is sent.
func (w *world) targetFails(addr string) bool {
	for i := range w.plan.Targets {
		if t := &w.plan.Targets[i]; t.Addr == addr {
			return len(t.Links.There)+len(t.Links.Back) > 0 || t.IdleClose > 0 && t.IdleClose < 2*time.Second || len(w.plan.Upstream.Targets[i].Ill) > 0
		}
	}
	return true
}
