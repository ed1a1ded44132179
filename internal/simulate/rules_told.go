package simulate

import "net/http"

// told: OnError is called for a response that its target has broken off.
func (r *ruler) told() {
	o, k := r.o, r.o.Attempt
	if k < 0 || k >= len(r.sights) || o.Tunnel != nil || r.client.Kind == WebSocket || o.LeftAlone || r.faulty() {
		return
	}
	if r.w.plan.Gateway.hooksPanic() {
		return // in the handler's own goroutine, perhaps before
	}
	plan := r.e.response(k)
	if plan.Framing == ByClose && plan.Body.How == FaultFIN || plan.Body.How == FaultSilence || r.e.Method == http.MethodHead {
		return
	}
	if r.sights[k].BrokeOff && plan.Body.Cut && !r.w.plan.Gateway.H2Targets && r.w.journal.errors[r.e.Token] == 0 && r.e.GiveUp == 0 && !r.leftOut(k) {
		r.fail("told", "%s broke its response off, and OnError was not called", r.sights[k].Target)
	}
}

// forbidden: a field that may not be a trailer is not forwarded as one.
func (r *ruler) forbidden() {
	if name := r.e.Forbidden; name != "" {
		for _, s := range r.sights {
			if got := s.Trailer[name]; len(got) > 0 {
				r.fail("trailers", "%s saw the trailer %s: %q", s.Target, name, got)
			}
		}
	}
	if r.o.Attempt < 0 {
		return
	}
	if name := r.e.response(r.o.Attempt).Forbidden; name != "" {
		if got := r.o.Trailer[name]; len(got) > 0 {
			r.fail("trailers", "the client saw the trailer %s: %q", name, got)
		}
	}
}
