package simulate

import (
	"math"
	"net/http"
	"slices"
	"time"
)

// caused: an error response of the gateway's own has a cause in the plan.
func (r *ruler) caused() {
	if r.w.sockets != nil || r.w.passage(r.e, r.client.Kind).last.refused {
		return // in real time anything may be late; or by a filter
	}
	switch s := r.o.Status; s {
	case 400:
		if !r.clientBreaks() {
			r.fail("causes", "400 to a request that is well formed")
		}
	case 408:
		if !r.clientBreaks() && r.e.Body.Pause == 0 && !r.timed() && !r.w.journal.mayCross(r.e.Token) {
			r.fail("causes", "408 to a client that sends its body at once")
		}
	case 413:
		if r.e.Body.Length <= r.mostBody() {
			r.fail("causes", "413 to a body of %d bytes, at most %d are allowed", r.e.Body.Length, r.mostBody())
		}
	case 502, 503, 504:
		if !r.troubled(s) && !r.byFilter(s) {
			r.fail("causes", "%d, and no target, bound or limit explains it", s)
		}
	}
}

// clientBreaks reports whether the gateway may see less of the request than its client has planned.
func (r *ruler) clientBreaks() bool {
	return r.e.Body.Cut || r.client.Pipelined || r.client.Kind == Malformed || len(r.client.Links.There)+len(r.client.Links.Back) > 0 || r.e.GiveUp > 0
}

// timed reports whether there is a timeout for the whole exchange.
func (r *ruler) timed() bool {
	return r.w.plan.Gateway.Timeout > 0 || r.w.plan.has(timeoutName)
}

// has reports whether a filter is in the chain.
func (p *Plan) has(name string) bool {
	return slices.ContainsFunc(p.Gateway.Filters, func(f FilterPlan) bool { return filterKinds[f.Kind].name == name })
}

// hasPanics reports whether a handler may panic by itself.
func (p *Plan) hasPanics() bool {
	return p.has("Recover") || p.Gateway.hooksPanic()
}

// mostBody returns the length of the longest body that the gateway accepts.
func (r *ruler) mostBody() int64 {
	switch {
	case len(r.w.plan.Gateway.Filters) > 0: // passage knows what they accept
		return -1
	case r.w.plan.Gateway.RequestBuffer != 0:
		return r.w.plan.Gateway.BufferSize
	}
	return math.MaxInt64
}

// troubled reports whether the gateway may have been unable to get a response.
func (r *ruler) troubled(status int) bool {
	p := &r.w.plan.Gateway
	if status == 503 && (r.w.plan.bounded() || p.MaxInFlight > 0 || p.Dynamic && p.MaxTargets > 0 || r.w.plan.has("Concurrency")) {
		return true
	}
	if status == 504 && r.timed() {
		return true
	}
	if status == 504 {
		return r.late()
	}
	return !r.w.plan.blameless()
}

// late reports whether a target may be late, by its link or by the exchange's plan. Over HTTP/2 other exchanges share its
// connection.
func (r *ruler) late() bool {
	g := &r.w.plan.Gateway
	if g.H2Targets || !r.e.blameless(g, r.client.Kind) {
		return true
	}
	return slices.ContainsFunc(r.w.plan.Targets, func(t TargetPlan) bool {
		return len(t.Links.There)+len(t.Links.Back)+len(t.Dials) > 0
	})
}

// blameless reports whether no target may fail: all respond in time. A target is to blame for a timeout only if it had half
// of the time.
func (p *Plan) blameless() bool {
	g := &p.Gateway
	if g.Check || g.H2Targets || p.Upstream.FailLatency > 0 || p.drains() || p.drainsTargets() {
		return false
	}
	for i := range p.Upstream.Targets {
		if t := &p.Upstream.Targets[i]; t.Down || t.Leaves || len(t.Ill) > 0 {
			return false
		}
	}
	for i := range p.Targets {
		t := &p.Targets[i]
		if len(t.Links.There)+len(t.Links.Back)+len(t.Dials) > 0 || t.IdleClose > 0 {
			return false
		}
	}
	for i := range p.Clients {
		c := &p.Clients[i]
		for k := range c.Requests {
			if e := &c.Requests[k]; !e.blameless(g, c.Kind) || e.listingMayFail(g) {
				return false
			}
		}
	}
	return true
}

// blameless reports whether no target may fail with the request.
func (e *ExchangePlan) blameless(g *GatewayPlan, kind ClientKind) bool {
	if t := &e.Tunnel; kind.upgrades() && (t.BadAccept || t.BadSwitch > 0 || t.TargetRefuse == 503 && g.FailStatus || t.Down.resets()) {
		return false // a reset may discard the 101
	}
	if e.holds() {
		return false // net/http's transport bounds the header meanwhile
	}
	for i := range e.Responses {
		r := &e.Responses[i]
		switch {
		case r.Never, r.Garbage, r.Odd > 0, r.Behind > 0, r.Body.Cut, r.Stale != NotStale, r.Unasked > 0:
			return false
		case r.Framing == ByClose && !r.Close && (e.Method == http.MethodHead || r.Status == 204 || r.Status == 304):
			return false // it closes the connection without notice
		case r.tooLong(e.Token): // the gateway accepts only headers up to its limit
			return false
		case r.Early && e.hasBody(): // the target may close while it is sent
			return false
		case g.FailStatus && (r.Status == 500 || r.Status == 503):
			return false
		case 2*r.lasts() >= g.shortest(): // a target that had half of the time is blamed
			return false
		}
	}
	return true
}

// resets reports whether the body is broken off by a reset, which may discard bytes sent before it.
func (b *BodyPlan) resets() bool { return b.Cut && b.How == FaultReset }

// lasts returns how long a target takes for a response whose client does not delay it.
func (r *ResponsePlan) lasts() time.Duration {
	pieces := int64(1)
	if r.Body.Piece > 0 {
		pieces += r.Body.Length / int64(r.Body.Piece)
	}
	pieces += r.Body.Length / (64 << 10)
	return r.Delay + r.HeaderPause + r.EndPause + 30*r.Drip + time.Duration(pieces)*r.Body.Pause + time.Second
}

// shortest returns the shortest time that a target may have.
func (g *GatewayPlan) shortest() time.Duration {
	least := 20 * time.Second
	for _, d := range []time.Duration{g.HeaderTimeout, g.TargetWrite, g.Timeout, g.BodyTimeout} {
		if d > 0 {
			least = min(least, d)
		}
	}
	for _, f := range g.Filters {
		if filterKinds[f.Kind].name == timeoutName {
			least = min(least, f.timeout())
		}
	}
	return least
}

// checkBlame checks that no failure is counted for a target that can't have failed.
func (w *world) checkBlame() {
	if w.sockets != nil || !w.plan.blameless() {
		return
	}
	for s := range w.gateway.population().Targets() {
		if !s.Healthy || s.Fails > 0 {
			w.journal.Break("blame", "%s is healthy: %v, with %d failures, and has not failed", s.Target.Addr, s.Healthy, s.Fails)
		}
	}
}
