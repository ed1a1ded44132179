package simulate

import (
	"net/http"
	"time"
)

// addResent chooses requests that are seldom sent again, or must not be: by a gateway that finds that a connection was kept
// too long, and by one that retries a body that came in pieces on another target.
func (p *Plan) addResent(c *Choices) {
	if !c.Bool(6) {
		return
	}
	pieces := c.Bool(2)
	if pieces {
		g := &p.Gateway
		g.RetryErrors, g.RetryStatus, g.NoKeepBody, g.Budget, g.RequestBuffer, g.Tries = true, true, false, false, 0, Pick(c, 0, 2)
	}
	for i := range p.Clients {
		client := &p.Clients[i]
		if client.Kind.upgrades() || client.Kind == Malformed {
			continue
		}
		for k := range client.Requests {
			if e := &client.Requests[k]; pieces {
				e.beInPieces(c, client.Kind)
			} else {
				e.beBare(c)
			}
		}
	}
}

// beBare makes a request one without a body that changes something, after responses that keep their connections.
func (e *ExchangePlan) beBare(c *Choices) {
	if e.Kube != KubeNothing {
		return
	}
	e.Method, e.Key = Pick(c, http.MethodPost, http.MethodPost, http.MethodPost, http.MethodPut, http.MethodDelete), c.Bool(8)
	e.Body, e.Trailer, e.Coding, e.Expect, e.Forbidden, e.HalfClose = BodyPlan{}, nil, "", false, "", false
	for i := range e.Responses {
		r := &e.Responses[i]
		r.calm()
		r.Delay, r.Odd, r.Close, r.Unasked = min(r.Delay, 100*time.Millisecond), 0, false, 0
		if r.Framing == ByClose {
			r.Framing = ByLength
		}
		r.Stale = StaleKind(c.Int(3))
	}
}

// beInPieces gives a request a body in pieces, after which the first target sends a response that is retried.
func (e *ExchangePlan) beInPieces(c *Choices, kind ClientKind) {
	if e.Kube != KubeNothing {
		return
	}
	e.Method, e.Key = Pick(c, http.MethodPut, http.MethodPut, http.MethodPost), c.Bool(2)
	e.Body.Length = int64(2 + c.Int(Pick(c, 3000, 60<<10)))
	e.Body.Cut, e.Body.Piece = false, max(1, int(e.Body.Length)/(2+c.Int(20)))
	e.Body.Pause = time.Duration(c.Int(20)) * 2 * time.Millisecond
	e.Coding, e.Expect, e.HalfClose = "", false, false
	e.Body.Chunked = e.Body.Chunked && kind != HTTP10
	r := &e.Responses[0]
	r.calm()
	if r.Early, r.Odd, r.OddFrames, r.Status = false, 0, 0, http.StatusServiceUnavailable; c.Bool(2) {
		r.Garbage = true
	}
}
