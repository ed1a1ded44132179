package simulate

import (
	"slices"
	"time"

	"github.com/culvert-go/culvert"
)

// addEnds chooses rare beginnings of requests and ends of responses.
func (p *Plan) addEnds(c *Choices) {
	for i := range p.Clients {
		client := &p.Clients[i]
		for k := range client.Requests {
			e := &client.Requests[k]
			e.Slashes = c.Bool(12) && client.Kind != Malformed
			e.Broken = c.Bool(40) && client.Kind != Malformed
			if client.Kind == WebSocket && c.Bool(4) {
				e.Method, e.Tunnel.Posted = Pick(c, "POST", "PUT"), 1+c.Int(10)
			}
			if !p.Gateway.H2Targets {
				continue
			}
			for n := range e.Responses {
				r := &e.Responses[n]
				r.Apart = c.Bool(3)
				if r.OddFrames > 0 || !c.Bool(4) {
					continue
				}
				r.Trailer = newFields(c, "X-Trailing") // beside a length, or behind an empty body
				if c.Bool(2) {
					r.Body.Length, r.Body.Cut = 0, false
				}
			}
		}
	}
}

// keepBody returns how many bytes of a request's body the proxy keeps for a retry (proxy.Retry.KeepBody), and reports
// whether there is such a bound.
func (g *GatewayPlan) keepBody() (most int64, bounded bool) {
	switch {
	case g.RequestBuffer > 0:
		return 0, false
	case g.NoKeepBody, !g.RetryErrors && !g.RetryTimeouts && !g.RetryStatus:
		return 0, true
	}
	return 64 << 10, true
}

// lost: a request is retried only if its whole body can be sent. Bytes that a target has read and the proxy does not keep
// can't be sent to the next target.
func (r *ruler) lost(before *Sight) {
	most, bounded := r.w.plan.Gateway.keepBody()
	plain := r.e.Coding == "" && !slices.ContainsFunc(r.w.plan.Gateway.Filters, func(f FilterPlan) bool { return filterKinds[f.Kind].name == "Decompress" })
	if bounded && plain && before.Got > most && !r.client.Kind.upgrades() {
		r.fail("attempts", "targets saw the request again, though %s had read %d bytes of its body, of which %d are kept", before.Target, before.Got, most)
	}
}

// broke: a target is not to blame for a request's body that the client breaks off.
func (t *times) broke() {
	sights := t.w.journal.sights[t.p.Token]
	o := t.w.journal.outcomes[t.p.Token]
	if o == nil || o.SentWhole || !t.e.Body.Cut || len(sights) != 1 || len(t.p.Attempts) != 1 || !t.w.smooth(t.p.Token) {
		return
	}
	s, e := sights[0], t.p.Failure
	if s.Unprocessed || s.brokeOffBefore(t.w.journal.start.Add(t.p.FailedAt)) {
		return // the target has ended the stream or the connection itself, before the client broke off perhaps
	}
	if t.w.trailersBehindReset(s) {
		return
	}
	if s.Wrote || s.Whole || s.Kept && t.e.response(0).Stale != NotStale || e == nil {
		return
	}
	if e.TargetSide() {
		t.fail(t.p.FailedAt, "%s is to blame for a body that the client has broken off: %v", s.Target, e)
	}
}

// trailersBehindReset reports whether the target's server may have ended the connection of s for the trailers of another
// stream, of which it has not read the whole body, and which it had reset: x/net's takes their HEADERS for those of a new
// stream (http2.serverConn.processHeaders).
func (w *world) trailersBehindReset(s *Sight) bool {
	for token, list := range w.journal.sights {
		e := w.exchanges[token]
		if e == nil || len(e.Trailer) == 0 {
			continue
		}
		if slices.ContainsFunc(list, func(other *Sight) bool { return other != s && other.From == s.From && !other.Whole }) {
			return true
		}
	}
	return false
}

// brokeOffBefore reports whether the target had ended its stream itself by then, with the header still unsent perhaps.
func (s *Sight) brokeOffBefore(end time.Time) bool {
	return (s.Reset || s.BrokeOff) && !s.Ended.IsZero() && !s.Ended.After(end)
}

// seen: the client sees the end soon after the handler has returned. The server waits for the rest of the client's body
// for ReadTimeout at most.
func (t *times) seen() {
	o, c := t.w.journal.outcomes[t.p.Token], t.w.clientOf(t.p.Token)
	if o == nil || o.Ended.IsZero() || t.p.Left == 0 || t.p.Upgrade || c.Pipelined || c.Kind != HTTP1 && c.Kind != HTTP10 || !t.w.smooth(t.p.Token) {
		return
	}
	if took := o.Ended.Sub(t.w.journal.start) - t.p.Left; took > late(t.g.ReadTimeout)+slack {
		t.fail(t.p.Left+took, "the client sees the end %v after the handler has returned, ReadTimeout is %v", took, t.g.ReadTimeout)
	}
}

// gone: ClientGone is reported only if the client has disconnected.
func (t *times) gone() {
	f, c := t.p.Failure, t.w.clientOf(t.p.Token)
	if f == nil || f.Kind != culvert.ClientGone || c.Kind != HTTP1 && c.Kind != HTTP10 || c.Pipelined || t.p.Upgrade || t.wholeEnded(t.p.FailedAt) || !t.w.smooth(t.p.Token) {
		return
	}
	o := t.w.journal.outcomes[t.p.Token]
	if o == nil || o.LeftAlone || o.Ended.Sub(t.w.journal.start) <= t.p.FailedAt {
		return
	}
	for i := range c.Requests {
		if e := &c.Requests[i]; e.HalfClose || e.Body.Cut {
			return
		}
	}
	if t.w.plan.has("Timeout") || t.w.plan.hasPanics() {
		return // which end the request's context, and the response
	}
	t.fail(t.p.FailedAt, "the client is connected, and the error is: %v", f)
}
