package simulate

import (
	"slices"
	"time"

	"golang.org/x/net/http2"
)

// unprocessed returns how often targets have signalled that they did not process the request.
func (r *ruler) unprocessed() (n int) {
	for _, s := range r.sights {
		if s.Unprocessed {
			n++
		}
	}
	return n
}

// early: a client receives a whole response also if its target has refused the rest of the request (RFC 9113 section 8.1).
// This is checked where the client can read while it sends: over HTTP/2.
func (r *ruler) early() {
	n := len(r.sights) - 1
	if n < 0 || !r.sights[n].NoError || !r.sights[n].Responded || r.client.Kind != Frames && r.client.Kind != HTTP2 {
		return
	}
	p := &r.w.plan.Gateway
	if r.o.Whole || r.o.Spoilt || r.raised() || r.faulty() || r.slow() || r.timed() || r.e.GiveUp > 0 || r.e.ReadPause > 0 || r.client.Frames.Late > 0 || len(p.Filters) > 0 || r.w.plan.oddConnections() {
		return
	}
	for i := range r.client.Requests { // see served
		if len(r.client.Requests[i].Trailer) > 0 {
			return
		}
	}
	if a := r.e.response(n); a.Body.Pause > 0 || a.Body.Cut || r.e.Body.Cut || r.e.Body.Pause > 0 || r.e.Forbidden != "" {
		return
	}
	r.fail("early", "%s has responded before the end of the request, and the client sees %d of attempt %d, %v", r.sights[n].Target, r.o.Status, r.o.Attempt, r.o.Err)
}

// unasked: the gateway does not end a client's connection that has no fault and was not idle for the server's IdleTimeout.
func (f *frameConn) unasked(frame *http2.GoAwayFrame) {
	if f.accept == nil && frame.ErrCode == http2.ErrCodeProtocol && !f.spoilt && !f.trailers() {
		f.world.journal.Break("goaway", "%s: the connection ends after stream %d for a well-formed header section", f.name, frame.LastStreamID)
	}
	if f.accept == nil && f.plan.GoAway == 0 && frame.ErrCode == http2.ErrCodeNo && time.Since(f.heard) < idleTimeout-slack-f.paused() && f.world.sockets == nil {
		f.world.journal.Break("goaway", "%s: the connection ends after stream %d, for no reason of the plan", f.name, frame.LastStreamID)
	}
}

// belated reports whether a frame does not show that the server is active: net/http's sends a RST_STREAM when the write
// deadline passes that a handler has set for a stream, also if the client had already reset it.
func (f *frameConn) belated(frame http2.Frame) bool {
	reset, ok := frame.(*http2.RSTStreamFrame)
	s := f.streams[frame.Header().StreamID]
	return ok && s != nil && s.gone && reset.ErrCode == http2.ErrCodeInternal
}

// trailers reports whether the client sends trailers: net/http ends a connection on which they arrive after the response
// to their request.
func (f *frameConn) trailers() bool {
	for i := range f.world.plan.Clients {
		if c := &f.world.plan.Clients[i]; &c.Frames == f.plan {
			return slices.ContainsFunc(c.Requests, func(e ExchangePlan) bool { return len(e.Trailer) > 0 })
		}
	}
	return false
}

// paused returns how much later than it was sent the client may have received a frame.
func (f *frameConn) paused() (longest time.Duration) {
	for i := range f.world.plan.Clients {
		if c := &f.world.plan.Clients[i]; &c.Frames == f.plan {
			for _, fault := range c.Links.Back {
				longest = max(longest, fault.Pause)
			}
		}
	}
	return longest
}
