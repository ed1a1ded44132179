package simulate

import (
	"net/http"
	"slices"
)

// attempts: a request is sent again only where a documented rule permits it.
func (r *ruler) attempts() {
	if most := r.mostAttempts() + r.unprocessed(); len(r.sights) > most {
		r.fail("attempts", "targets saw the request %d times, at most %d are allowed", len(r.sights), most)
	}
	if r.faulty() || r.slow() {
		return // what a link or a busy machine holds back may arrive behind the next attempt
	}
	sights := r.asSent()
	r.onceEach(sights)
	for k := 1; k < len(sights); k++ {
		before, again := sights[k-1], sights[k]
		r.lost(before)
		if !before.Unprocessed && !r.stale(before, again, r.wasIdle(sights, k-1)) && !r.retried(before, again) {
			r.fail("attempts", "%s saw the request again, which %s had on a connection kept %v, with a response begun %v", again.Target, before.Target, before.Kept, before.Wrote)
		}
	}
}

// onceEach: each target gets the request at most once, but for one that broke a kept connection off before it began a
// response. Over HTTP/2 that is known of one that has reset the request's stream alone.
func (r *ruler) onceEach(sights []*Sight) {
	for k, again := range sights {
		for n, before := range sights[:k] {
			switch {
			case before.Target != again.Target:
			case r.w.plan.Gateway.H2Targets:
				if before.Reset && !before.reset.missed() {
					r.fail("attempts", "%s got the request again, whose stream it had reset", again.Target)
				}
			case !r.wasIdle(sights, n):
				r.fail("attempts", "%s got the request again, which had it on a fresh connection", again.Target)
			case !r.unbegun(before):
				r.fail("attempts", "%s got the request again, to which it had begun a response", again.Target)
			}
		}
	}
}

// unbegun reports whether the gateway has seen nothing of a target's response: it has written none, or a reset has taken along
// what it had written. The end of a connection on which a part of the body has not been read is a reset, too, as is that of a
// target which has fallen silent. Over HTTP/2, and over real sockets, where a bridge reads what the gateway may not have, the
// plan says what may have been lost.
func (r *ruler) unbegun(s *Sight) bool {
	if s.Wrote && s.Response.out != nil && r.w.sockets == nil {
		return !s.Response.seen()
	}
	return !s.Wrote || r.e.response(s.Attempt).Body.resets() || r.e.hasBody() && !s.Whole
}

// mostAttempts returns how often targets may see the request. A target that is asked may see it twice, once over
// a connection that it had kept too long; net/http's transport tries all idle connections that it has, and a new one.
func (r *ruler) mostAttempts() int {
	p := &r.w.plan.Gateway
	asked := len(r.w.plan.Targets) + len(r.w.plan.Changes)
	if p.RetryErrors {
		asked++ // the last one again, if it broke a kept connection off
	}
	if p.Tries > 0 {
		asked = min(asked, p.Tries)
	}
	switch {
	case r.safe() && p.Transport:
		return asked * (mostIdle + 1)
	case r.safe():
		return asked * 2
	case r.repeatable() && (p.RetryErrors || p.RetryTimeouts || p.RetryStatus):
		return asked
	}
	return 1
}

// mostIdle is the default of upstream.Options.MaxIdleConns.
const mostIdle = 128

// stale reports whether another attempt may follow before since a target may close a connection that was kept: it
// has written nothing, and the request is safe or has a key, and no body (RFC 9112 section 9.3.1). If the target
// can't be dialled then, it is another one's turn.
func (r *ruler) stale(before, again *Sight, idle bool) bool {
	sameTarget := before.Target == again.Target
	return r.safe() && idle && r.unbegun(before) && (r.w.plan.Gateway.Transport || !again.Kept || !sameTarget)
}

// wasIdle reports whether attempt k was sent over a connection that had stood idle. net/http's transport keeps those, too,
// that it dialled for a request which went over another one meanwhile: they are older than the request's turn, or were
// dialled for the same request, which another connection has lost.
func (r *ruler) wasIdle(sights []*Sight, k int) bool {
	s := sights[k]
	if r.w.plan.Gateway.Transport && !r.w.plan.Gateway.H2Targets {
		return r.tookIdle(s)
	}
	turn := r.o.Sent
	if k > 0 {
		turn = sights[k-1].At
	}
	return s.Kept || r.w.plan.Gateway.Transport && s.Opened.Before(turn)
}

// retried reports whether proxy.Retry lets another attempt follow before.
func (r *ruler) retried(before, again *Sight) bool {
	p := &r.w.plan.Gateway
	plan := r.e.response(before.Attempt)
	switch {
	case !r.repeatable() || p.Tries == 1:
		return false
	case p.RetryStatus && plan.Status == http.StatusServiceUnavailable:
		return true
	}
	// What the target had written may have been no response, or none in time. And an attempt whose time is over may reach
	// a target that is slow to accept it behind the next one.
	return (p.RetryErrors || p.RetryTimeouts) && r.o.Attempt != before.Attempt || p.RetryTimeouts && r.o.Attempt != again.Attempt
}

// safe reports whether net/http and culvert send the request again over another connection. Of a body whose length is
// said to be 0 there is nothing that could not be sent again.
func (r *ruler) safe() bool {
	if (r.e.Body.Length > 0 || r.e.Body.Chunked) && !r.client.Kind.upgrades() {
		return false
	}
	return r.e.Key || slices.Contains([]string{"GET", "HEAD", "OPTIONS", "TRACE"}, r.e.Method)
}

// repeatable reports whether the request may reach two targets, as proxy.Retry documents it.
func (r *ruler) repeatable() bool {
	idempotent := []string{"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"}
	return r.w.plan.Gateway.NonIdempotent || r.e.Key || slices.Contains(idempotent, r.e.Method)
}
