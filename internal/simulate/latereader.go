package simulate

import (
	"io"
	"net/http"
	"time"
)

// byteCounter counts what is read.
type byteCounter struct {
	io.Reader
	tap
	n int
}

// Read counts.
func (b *byteCounter) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	b.n += n
	b.keep(p[:n])
	return n, err
}

// holdOff waits as long as the plan says before the client reads a response.
func (c *client) holdOff(e *ExchangePlan, o *Outcome) {
	if e.ReadAfter > 0 {
		c.world.journal.manners.Add("accepts nothing for a while", 1)
		c.world.sleep(e.ReadAfter)
		o.ReadFrom = time.Now()
	}
}

// accepted: a client that accepts nothing of a response for longer than WriteTimeout gets no whole response. This checks
// the part that is written after the gateway's handler has returned; the guard of the writer checks the rest.
func (t *times) accepted() {
	o := t.w.journal.outcomes[t.p.Token]
	if o == nil || o.ReadFrom.IsZero() || t.p.Left == 0 || !o.Whole || t.replaced(o) {
		return
	}
	bound := t.g.WriteTimeout
	if t.w.plan.has(timeoutName) || t.w.plan.has("Recover") { // these filters respond by themselves
		bound = max(bound, refusalTimeout)
	}
	waited := o.ReadFrom.Sub(t.w.journal.start) - t.p.Left
	if room := t.room(o); o.Read > room && waited > late(bound)+slack {
		t.fail(t.p.Left+waited, "the client gets all %d bytes of a response, of which it has accepted %d within %v; WriteTimeout is %v", o.Read, room, waited, t.g.WriteTimeout)
	}
}

// room returns how many bytes of a response the network accepts that the client does not read. A response of the gateway's
// own is not written in small pieces (smallWrite).
func (t *times) room(o *Outcome) int {
	room := t.w.clientOf(t.p.Token).Links.Manners.Window
	if o.Attempt >= 0 {
		room += reserve
	}
	return room
}

// replaced reports whether the response may be that of a program's handler, which bounds its writes itself.
func (t *times) replaced(o *Outcome) bool {
	return t.g.Hooks.Modify == ModifyReplaces && o.Status == http.StatusNotFound && o.Attempt < 0
}

// refusalTimeout is how long a client may take to accept a filter's own response.
const refusalTimeout = time.Minute

// unreadTime is how long the gateway waits for a body that a filter has refused to read (clientbody.LeaveUnread).
const unreadTime = 5 * time.Second

// refusedSoon: a client sees a filter's refusal even if it does not send the rest of its body.
func (t *times) refusedSoon() {
	o, c := t.w.journal.outcomes[t.p.Token], t.w.clientOf(t.p.Token)
	if t.e == nil || t.p.Proxied > 0 || o == nil || o.Ended.IsZero() || t.p.Left == 0 || c.Kind != HTTP1 && c.Kind != HTTP10 || c.Pipelined || !t.w.smooth(t.p.Token) {
		return
	}
	if took := o.Ended.Sub(t.w.journal.start) - t.p.Left; took > unreadTime+slack {
		t.fail(t.p.Left+took, "the client sees the end %v after a filter has refused the request", took)
	}
}

// holds reports whether the client may delay interim responses, and with them the header that follows.
func (e *ExchangePlan) holds() bool {
	if e.ReadAfter == 0 {
		return false
	}
	for i := range e.Responses {
		if e.Responses[i].hasInterim() {
			return true
		}
	}
	return false
}

// prompt reports whether the target of attempt i surely had the header of its response ready within most: any longer time
// was the client's.
func (m *model) prompt(p *Passage, i int, most time.Duration) bool {
	e, s := m.w.exchanges[p.Token], m.w.journal.sightOf(p, i)
	if e == nil || s == nil || p.Body || m.w.plan.Gateway.H2Targets {
		return false
	}
	for k := range m.w.plan.Targets {
		if t := &m.w.plan.Targets[k]; len(t.Links.There)+len(t.Links.Back) > 0 {
			return false
		}
	}
	r, before := e.response(s.Attempt), s.At.Sub(m.w.journal.start)-p.Attempts[i].Began
	return r.Odd == 0 && r.Drip == 0 && before+r.Delay+promptly < most
}

// promptly is longer than the network takes for a header and the interim responses before it.
const promptly = 500 * time.Millisecond

// behindLate reports whether the connection may have been idle for too long, since the client took long to read the previous
// response.
func (r *ruler) behindLate() bool {
	for i := range r.client.Requests {
		if r.client.Requests[i].Token+1 == r.e.Token && r.client.Requests[i].ReadAfter >= r.w.plan.takes(idleTimeout) {
			return true
		}
	}
	return false
}
