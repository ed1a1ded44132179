package simulate

import "time"

// resetsWhatIsCut reports whether a response that ends with its connection is whole if that ends by a FIN: package server
// resets the connection of one that is broken off. The guard hides net/http's writer from clientside.Abort.
func (r *ruler) resetsWhatIsCut() bool {
	return r.w.plan.Gateway.Server && len(r.client.Links.There)+len(r.client.Links.Back) == 0
}

// endReset reports whether a filter may have ended a watch whose client speaks HTTP/1.0. Its connection is reset, and what
// the client had not read is lost with it, the ERROR event for instance.
func (r *ruler) endReset() bool {
	if r.client.Kind != HTTP10 || !r.resetsWhatIsCut() {
		return false
	}
	for i := range r.sights {
		if r.w.passage(r.e, r.client.Kind).response(i).told {
			return true
		}
	}
	return false
}

// lingers reports whether the client receives a response that did not wait for its request: package server reads for two
// seconds what the client still sends before it closes the connection (RFC 9112 section 9.6).
func (r *ruler) lingers() bool {
	return r.w.plan.Gateway.Server && !r.client.Kind.overHTTP2() && !r.e.Body.Cut && r.e.sentWithin(time.Second)
}

// sentWithin reports whether the body of the request is sent within d, if its client's link permits it.
func (e *ExchangePlan) sentWithin(d time.Duration) bool {
	piece := int64(e.Body.Piece)
	if piece == 0 {
		piece = 32 << 10 // as io.Copy reads
	}
	pieces := 1 + e.Body.Length/piece
	return time.Duration(pieces)*e.Body.Pause < d
}
