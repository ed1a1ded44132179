package simulate

import (
	"fmt"
	"net/http"
	"slices"
	"time"
)

// belongs: a response belongs to its request.
func (r *ruler) belongs() {
	o := r.o
	if o.Header == nil {
		return
	}
	if got := o.Header.Get("X-Token"); got != "" && got != fmt.Sprint(r.e.Token) {
		r.fail("belongs", "the response is that of #%s", got)
	}
	if o.Bad != nil && !r.recoded() {
		r.fail("bytes", "the response's body: %v", o.Bad)
	}
	if o.Attempt < 0 {
		r.own()
		return
	}
	if o.Attempt >= len(r.sights) {
		r.fail("belongs", "a response of attempt %d, of which no target knows", o.Attempt)
		return
	}
}

// own: a response of the gateway's own is an error, with a status that gateways use.
func (r *ruler) own() {
	if r.client.Kind == Malformed && slices.Contains(refusals, r.o.Status) {
		return
	}
	if r.o.Tunnel != nil && r.client.Kind == WebSocket2 {
		return // 200, as RFC 8441 has it
	}
	if r.client.Kind == WebSocket2 && r.o.Status == http.StatusNotImplemented && r.e.Tunnel.TargetRefuse == http.StatusOK {
		return // wsupgrade.Forwarder.Forward: a 2xx would open the tunnel
	}
	switch s := r.o.Status; s {
	case 400, 408, 413, 415, 500, 502, 503, 504:
	case 101:
	case http.StatusForbidden:
		if r.e.Guarded == "" && !r.byFilter(s) {
			r.fail("belongs", "403 to a request that names no address which is refused")
		}
	default:
		if !r.byFilter(s) {
			r.fail("belongs", "status %d without a target's token", s)
		}
	}
	may := r.w.passage(r.e, r.client.Kind).last.may
	switch s := r.o.Status; {
	case r.e.Broken && s == 502 && !slices.Contains(may, s):
		r.fail("own errors", "the gateway responded 502, and has sent no target anything")
	case s == 500 && !r.e.Broken && !r.raised() && !slices.Contains(may, s):
		r.fail("own errors", "the gateway responded 500")
	}
	r.caused()
}

// byFilter reports whether a filter may respond with a status in place of the targets.
func (r *ruler) byFilter(status int) bool {
	p := r.w.passage(r.e, r.client.Kind)
	for i := range r.sights {
		if p.response(i).instead == status {
			return true
		}
	}
	replaced := r.client.Kind.upgrades() && status == http.StatusNotFound && r.w.plan.Gateway.Hooks.Modify == ModifyReplaces
	return replaced || slices.Contains(p.last.may, status)
}

// complete: a response that looks whole is whole.
func (r *ruler) complete() {
	o := r.o
	if !o.Whole || o.Attempt < 0 || o.Tunnel != nil || o.Collected || r.recoded() || r.client.Kind.upgrades() {
		return
	}
	plan := r.e.response(o.Attempt)
	want := plan.Body.Length
	if r.withoutContent(plan) {
		want = 0
	}
	byClose := o.ByClose && !r.resetsWhatIsCut() || plan.Framing == ByClose && !r.w.plan.Gateway.H2Targets
	if o.Got != want && !byClose {
		r.fail("whole", "the response looks whole with %d bytes of %d", o.Got, want)
	}
	if o.Got != want && byClose && r.sights[min(o.Attempt, len(r.sights)-1)].Responded && !r.faulty() && !o.ByClose {
		r.fail("whole", "the response has %d bytes of %d", o.Got, want)
	}
}

// faulty reports whether a link had a fault.
func (r *ruler) faulty() bool {
	f := len(r.client.Links.There)+len(r.client.Links.Back) > 0 || r.w.plan.Upstream.resets()
	for _, t := range r.w.plan.Targets {
		f = f || len(t.Links.There)+len(t.Links.Back) > 0
	}
	return f
}

// served: without faults and timeouts the client receives a whole response.
func (r *ruler) served() {
	o, p := r.o, &r.w.plan.Gateway
	if o.Whole || o.Spoilt || o.Tunnel != nil || r.client.Kind.upgrades() || r.client.Kind == Malformed || r.client.Pipelined || r.faulty() || r.e.GiveUp > 0 || r.e.hasBody() && !r.calm() && !r.lingers() {
		return
	}
	if r.e.Panics || r.raised() || r.dialPanicked() || r.e.ReadAfter > 0 || r.behindLate() {
		return // the time for a write may end
	}
	if r.e.HalfClose {
		return // net/http takes a FIN for the client's leaving
	}
	if r.client.Frames.Late > 0 {
		return // the time for a write may end
	}
	if r.w.passage(r.e, r.client.Kind).last.panics {
		return // the gateway's own response, perhaps
	}
	if slices.ContainsFunc(r.client.Requests, func(e ExchangePlan) bool { return r.w.passage(&e, r.client.Kind).last.over }) {
		return // after a body that is too long the connection is closed, perhaps without a response: one had begun
	}
	if r.client.Kind.overHTTP2() && slices.ContainsFunc(r.client.Requests, func(e ExchangePlan) bool { return len(e.Trailer) > 0 }) {
		return // net/http ends a connection on which trailers come behind the response to their request
	}
	if r.behindEarly() || r.behindBroken() {
		return
	}
	if r.w.plan.oddConnections() {
		return
	}
	for i := range r.e.Responses {
		a := &r.e.Responses[i]
		if a.OddFrames > 0 && !frameOddities[a.OddFrames-1].owed {
			return
		}
		if a.Never || a.Garbage || a.Odd > 0 || a.Behind > 0 || a.Body.Cut || a.Body.Pause > 0 || p.BodyTimeout > 0 && a.HeaderPause >= p.BodyTimeout || r.w.passage(r.e, r.client.Kind).response(i).broken() {
			return
		}
	}
	if r.e.ReadPause > 0 && (p.WriteTimeout < time.Minute || p.Timeout > 0) || p.Timeout > 0 {
		return
	}
	if r.slow() {
		return
	}
	if r.endTold() || r.endReset() || r.heldTooLong() {
		return
	}
	r.fail("served", "the client sees no whole response: %v", o.Err)
}

// calm reports whether a request's body is small, is sent at once and has reached a target, and no response is sent before
// its end: then the client sees the response. If the gateway has refused the body, the connection may end with it.
func (r *ruler) calm() bool {
	b, n := &r.e.Body, len(r.sights)
	return n > 0 && r.sights[n-1].Whole && !b.Cut && b.Pause == 0 && b.Length <= 3000 && !r.e.Expect && !slices.ContainsFunc(r.e.Responses, func(a ResponsePlan) bool { return a.Early })
}

// endTold reports whether the client saw all of a watch that a filter has ended, including its ERROR event.
func (r *ruler) endTold() bool {
	if r.o.Attempt < 0 || !r.o.Collected {
		return false
	}
	m := r.w.passage(r.e, r.client.Kind).response(r.o.Attempt)
	if m.loose {
		m.coding = r.o.Header.Get("Content-Encoding")
	}
	plain, _ := decoded(r.o.Header.Get("Content-Encoding"), r.o.Raw)
	return m.told && m.matches != nil && m.matches(plain, true) == nil
}

// heldTooLong reports whether the time to the header may have ended after the target's header was received: the header of a
// list is sent with its first item, that of an object when it is whole. Then the response is broken off.
func (r *ruler) heldTooLong() bool {
	if r.e.Kube != KubeList && r.e.Kube != KubeObject {
		return false
	}
	return slices.ContainsFunc(r.w.plan.Gateway.Filters, func(f FilterPlan) bool {
		return filterKinds[f.Kind].name == timeoutName && r.o.Ended.Sub(r.o.Sent) >= f.timeout()
	})
}
