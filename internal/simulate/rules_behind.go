package simulate

import "time"

// drained is how much of a body package server reads that a handler has left, so that the connection is kept.
const drained = 256 << 10

// before returns the request before r's on the same connection of HTTP/1.1, and its outcome; nil if there is none.
func (r *ruler) before() (*ExchangePlan, *Outcome) {
	if r.client.Kind != HTTP1 || r.o.Behind == nil {
		return nil, nil
	}
	for i := range r.client.Requests {
		if e := &r.client.Requests[i]; r.w.journal.outcomes[e.Token] == r.o.Behind {
			return e, r.o.Behind
		}
	}
	return nil, nil
}

// behindEarly reports whether the previous request on the same connection had its response before its body had ended: the
// gateway then closes the connection (RFC 9112 section 9.3), and a request that is on its way is lost.
func (r *ruler) behindEarly() bool {
	e, o := r.before()
	if e != nil && e.Page != PageNone && r.w.plan.Gateway.Server && e.sentWithin(time.Second) && e.requestLength() <= drained {
		return false
	}
	return e != nil && e.hasBody() && (o.Attempt < 0 || e.response(o.Attempt).Early)
}

// behindBroken reports whether the gateway may have broken off the previous response on the same connection after its client
// had received all of it: a handler panicked after it, or the response was malformed after its Content-Length (RFC 9113
// section 8.1.1). The gateway then closes the connection, and a request that is on its way is lost: no target has seen it,
// and no byte was returned.
func (r *ruler) behindBroken() bool {
	e, o := r.before()
	if e != nil && e.Page.cut() {
		return true // a response to HEAD looks whole
	}
	if e == nil || !o.Whole || len(r.sights) > 0 || r.o.Read > 0 {
		return false
	}
	return r.w.breaksBehind(e, r.client.Kind, o.Attempt)
}

// breaksBehind reports whether the gateway may break a response off when its client has received all of it.
func (w *world) breaksBehind(e *ExchangePlan, kind ClientKind, attempt int) bool {
	if e.Page.cut() || w.passage(e, kind).response(max(0, attempt)).aborted {
		return true
	}
	if attempt < 0 {
		return false
	}
	n := e.response(attempt).OddFrames
	return n > 0 && !frameOddities[n-1].owed
}
