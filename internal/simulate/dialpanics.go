package simulate

import (
	"context"
	"net/http"
)

// addDialPanics chooses histories in which the embedder's DialContext panics, at the first or second dial for a request.
// The list that a filter requests for a resumed watch is a request, too.
func (p *Plan) addDialPanics(c *Choices) {
	if !c.Bool(12) {
		return
	}
	for i := range p.Clients {
		client := &p.Clients[i]
		for k := range client.Requests {
			if e := &client.Requests[k]; client.Kind != Malformed && c.Bool(3) {
				e.DialPanics = Pick(c, 1, 1, 2)
			}
		}
	}
}

// dialPanics panics if the plan has a panic for this dial.
func (j *Journal) dialPanics(ctx context.Context) {
	p := passageOf(ctx)
	if p == nil {
		return // the dial is for a check or a Mirror's copy
	}
	j.mu.Lock()
	p.dials++
	e := j.exchanges[max(p.Token, p.Lists)]
	panics := e != nil && e.DialPanics == p.dials
	if panics {
		p.DialPanicked = true
	}
	j.mu.Unlock()
	if panics {
		j.Note("gateway", "#%d: DialContext panics", max(p.Token, p.Lists))
		j.manners.Add("gateway: DialContext panics", 1)
		panic(http.ErrAbortHandler)
	}
}

// dialPanicked: a panic of DialContext counts as one of the handler. Its client gets no response, and OnError is not
// called, unless the request was sent over another connection meanwhile.
func (t *times) dialPanicked() {
	o := t.w.journal.outcomes[t.p.Token]
	if !t.p.DialPanicked || t.g.Hedge > 0 || o == nil || len(t.w.journal.sights[t.p.Token]) > 0 {
		return
	}
	if o.Status > 0 || o.Whole {
		t.fail(t.p.Left, "DialContext has panicked, and the client sees %d", o.Status)
	}
	if t.p.Failure != nil {
		t.fail(t.p.FailedAt, "DialContext has panicked, and OnError is called with: %v", t.p.Failure)
	}
}

// dialPanicked reports whether DialContext may have panicked for the exchange.
func (r *ruler) dialPanicked() bool {
	for _, p := range r.w.journal.passages {
		if max(p.Token, p.Lists) == r.e.Token && p.DialPanicked {
			return true
		}
	}
	return false
}
