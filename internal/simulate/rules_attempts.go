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
		return // a link or a busy machine may delay an attempt until after the next one
	}
	sights := r.asSent()
	r.onceEach(sights)
	for k := 1; k < len(sights); k++ {
		before, again := sights[k-1], sights[k]
		r.lost(before)
		if !before.Unprocessed && !r.hedged(before, again) && !r.stale(before, again, r.wasIdle(sights, k-1)) && !r.retried(before, again) {
			r.fail("attempts", "%s saw the request again, which %s had on a connection kept %v, with a response begun %v", again.Target, before.Target, before.Kept, before.Wrote)
		}
	}
}

// onceEach: each target gets the request at most once, except one that broke off a kept connection before it began a
// response. Over HTTP/2 the rule is checked for a target that has reset only the request's stream.
func (r *ruler) onceEach(sights []*Sight) {
	for k, again := range sights {
		for n, before := range sights[:k] {
			switch {
			case before.Target != again.Target:
			case r.w.plan.Gateway.RetryWait > 0 && r.retried(before, again): // it has waited
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

// unbegun reports whether the gateway has seen nothing of a target's response: it has written none, or a reset has discarded
// the bytes that it had written. The end of a connection on which a part of the body was not read is a reset, too, and so is
// that of a target that has fallen silent. Over HTTP/2, and over real sockets, where a bridge may read more than the gateway,
// the plan says what may have been lost.
func (r *ruler) unbegun(s *Sight) bool {
	if s.Wrote && s.Response.out != nil && r.w.sockets == nil {
		return !s.Response.seen()
	}
	return !s.Wrote || r.e.response(s.Attempt).Body.resets() || r.e.hasBody() && !s.Whole
}

// mostAttempts returns how often targets may see the request. A target may see it twice, the first time over a connection
// that it had kept too long; net/http's transport tries all idle connections that it has, and a new one.
func (r *ruler) mostAttempts() int {
	p := &r.w.plan.Gateway
	most := len(r.w.plan.Targets) + len(r.w.plan.Changes)
	if p.RetryErrors {
		most++ // the last one again, if it broke off a kept connection
	}
	if p.RetryWait > 0 {
		most = mostWaited
	}
	if p.Tries > 0 {
		most = min(most, p.Tries)
	}
	switch {
	case r.safe() && r.byTransport():
		return most * (mostIdle + 1)
	case r.safe():
		return most * 2
	case r.repeatable() && (p.RetryErrors || p.RetryTimeouts || p.RetryStatus):
		return most
	}
	return 1
}

// mostWaited is how many attempts the pauses of Retry.Wait leave room for in the longest wait of a plan.
const mostWaited = 100

// mostIdle is the default of upstream.Options.MaxIdleConns.
const mostIdle = 128

// stale reports whether another attempt may follow before since a target may close a kept connection: it has written
// nothing, and the request is safe or has a key, and no body (RFC 9112 section 9.3.1). If the target then can't be
// dialled, the request is retried on another one.
func (r *ruler) stale(before, again *Sight, idle bool) bool {
	sameTarget := before.Target == again.Target
	return r.safe() && idle && r.unbegun(before) && (r.byTransport() || !again.Kept || !sameTarget)
}

// wasIdle reports whether attempt k was sent over a connection that had been idle. net/http's transport also keeps connections
// that it dialled for a request which was sent over another one meanwhile: they are older than the attempt, or were dialled
// for the same request, which another connection has lost.
func (r *ruler) wasIdle(sights []*Sight, k int) bool {
	s := sights[k]
	if r.byTransport() && !r.w.plan.Gateway.H2Targets {
		return r.tookIdle(s) || !r.w.plan.Gateway.Transport && s.Kept // a body of length 0 may not be hedged
	}
	turn := r.o.Sent
	if k > 0 {
		turn = sights[k-1].At
	}
	return s.Kept || r.byTransport() && s.Opened.Before(turn)
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
	// The bytes that the target had written may have been no response, or too late. And an attempt whose time is over may
	// reach a target that is slow to accept its connection after the next attempt.
	return (p.RetryErrors || p.RetryTimeouts) && r.o.Attempt != before.Attempt || p.RetryTimeouts && r.o.Attempt != again.Attempt
}

// hedged reports whether a target may get the request beside another one, if it takes longer than Retry.Hedge to respond.
func (r *ruler) hedged(before, again *Sight) bool {
	p := &r.w.plan.Gateway
	return p.Hedge > 0 && p.Tries != 1 && r.safe() && !r.client.Kind.upgrades() && before.Target != again.Target
}

// byTransport reports whether the exchange runs by net/http's transport.
func (r *ruler) byTransport() bool {
	p := &r.w.plan.Gateway
	return p.Transport || p.Hedge > 0 && r.safe() && !r.client.Kind.upgrades()
}

// safe reports whether net/http and culvert send the request again over another connection. A body with Content-Length 0
// does not prevent that.
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
