package simulate

import "net/http"

// buffers: a buffered request is sent after all of it was received, or refused if it does not fit.
func (r *ruler) buffers(p *passage) {
	g := &r.w.plan.Gateway
	if g.RequestBuffer == 0 || !r.e.hasBody() || r.client.Kind.upgrades() {
		return
	}
	for _, s := range r.sights {
		if !r.o.SentWhole && r.e.Body.Cut && r.e.Body.CutAt < r.e.requestWire().Size() {
			r.fail("buffer", "%s saw a request of which a part was sent", s.Target)
		}
		if g.RequestBuffer > 0 && p.bodyLength() > g.bufferSize(g.RequestBuffer) {
			r.fail("buffer", "%s saw a request with a body of %d bytes, which does not fit into the buffer", s.Target, p.bodyLength())
		}
	}
	if r.o.Status == http.StatusRequestEntityTooLarge && p.bodyLength() > g.bufferSize(g.RequestBuffer) {
		r.w.journal.effects.Add("too large for the buffer", 1)
	}
}

// bodyLength returns the length of the body as the proxy reads it.
func (p *passage) bodyLength() int64 { return p.last.length }

// bufferSize returns how many bytes a buffer holds.
func (g *GatewayPlan) bufferSize(kind int) int64 {
	b := g.buffer(kind, "")
	return b.Memory + b.Disk
}
