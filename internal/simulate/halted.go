package simulate

import (
	"net/http"
	"time"
)

// addHalted chooses histories whose clients stop sending within a body, for a while or for ever, and whose first targets
// respond meanwhile, mostly with a response that is dropped for another target's.
func (p *Plan) addHalted(c *Choices) {
	if !c.Bool(10) {
		return
	}
	if c.Bool(2) {
		p.Gateway.RetryStatus, p.Gateway.NonIdempotent = true, true
	}
	for i := range p.Clients {
		client := &p.Clients[i]
		if client.Kind.upgrades() || client.Kind == Malformed || client.Pipelined {
			continue
		}
		for k := range client.Requests {
			if e := &client.Requests[k]; e.Kube == KubeNothing && c.Bool(2) {
				e.halt(c)
			}
		}
	}
}

// halt makes the client of a request stop sending within its body.
func (e *ExchangePlan) halt(c *Choices) {
	e.Method = Pick(c, http.MethodPut, http.MethodPut, http.MethodPost)
	e.Body = BodyPlan{Length: int64(2 + c.Int(Pick(c, 3000, 60<<10))), Chunked: e.Body.Chunked}
	e.Body.Cut, e.Body.CutAt, e.Body.How = true, 1+int64(c.Int(int(e.Body.Length)-1)), FaultSilence
	e.Coding, e.Expect, e.HalfClose, e.Trailer = "", false, false, nil
	r := &e.Responses[0]
	r.calm()
	r.Early, r.Odd, r.OddFrames, r.Interim = true, 0, 0, 0
	r.Status = Pick(c, http.StatusServiceUnavailable, http.StatusServiceUnavailable, http.StatusOK)
	r.Delay = min(r.Delay, 100*time.Millisecond)
}

// dropped: when a response is dropped for another target's, its attempt ends at once, even if its client has more to send.
func (t *times) dropped() {
	for i := range t.p.Attempts {
		a, s := &t.p.Attempts[i], t.w.journal.sightOf(t.p, i)
		if !(&model{w: t.w}).dropped(a) || s == nil || t.e.response(s.Attempt).hasInterim() {
			continue // an interim response may be on its way to the client
		}
		if took := a.Ended - a.Began - a.TimeToHeader; took > slack {
			t.fail(a.Ended, "the response of %s was dropped, and its attempt ended %v after its header", a.Target, took)
		}
		if t.p.Body {
			t.w.journal.manners.Add("gateway: a response dropped beside a body", 1)
			t.freed(a, s)
		}
	}
}

// freed: when an attempt has ended, its place (MaxConns) may be another request's. Its target then gets no more of the
// request than what was on its way.
func (t *times) freed(a *Attempt, s *Sight) {
	if !t.w.smooth(t.p.Token) {
		return // a link holds its end up
	}
	if ended := t.w.journal.start.Add(a.Ended); s.ReadEnd.After(ended.Add(slack)) {
		t.fail(a.Ended, "%s had the request for %v behind its attempt, whose response was dropped", s.Target, s.ReadEnd.Sub(ended))
	}
}
