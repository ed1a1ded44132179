package simulate

import (
	"slices"
	"time"
)

// sceneAround: a filter between two Recovers panics while the handler writes.
func (p *Plan) sceneAround(c *Choices) {
	p.wellTargets()
	list := p.Gateway.Filters
	outer := c.Int(len(list) + 1)
	list = slices.Insert(list, outer, FilterPlan{Kind: kindOf("Recover"), A: c.Int(4), B: Pick(c, panicAtHeader, panicAtWrite)})
	inner := outer + 1 + c.Int(len(list)-outer)
	p.Gateway.Filters = slices.Insert(list, inner, FilterPlan{Kind: kindOf("Recover")})
	client := p.join(c, 2+c.Int(4))
	for i := range client.Requests {
		client.Requests[i].Wait = time.Duration(c.Int(20)) * 10 * time.Millisecond
	}
}

// sceneFirstByte: the first byte of a request's body is not sent, the body has no length, and its method seldom has a body.
// Meanwhile a target closes a connection as idle for too long.
func (p *Plan) sceneFirstByte(c *Choices) {
	p.Gateway.Transport, p.Gateway.MaxIdle, p.Gateway.MaxConnRequests = true, 0, 0
	p.wellTargets()
	if c.Bool(2) {
		p.Gateway.Filters = nil
	}
	for range 2 {
		client := p.join(c, 2+c.Int(4))
		client.Kind = Pick(c, HTTP2, HTTP2, HTTP1)
		for i := range client.Requests {
			e := &client.Requests[i]
			e.Wait = time.Duration(c.Int(20)) * 10 * time.Millisecond
			if c.Bool(2) {
				e.Method = Pick(c, "DELETE", "GET", "OPTIONS", "HEAD")
				e.Body = BodyPlan{Length: 1, Chunked: true, Cut: true, How: FaultSilence}
				e.GiveUp = time.Duration(3+c.Int(30)) * 100 * time.Millisecond
			}
			e.Responses[0].Unasked = time.Duration(1+c.Int(100)) * 2 * time.Millisecond
		}
	}
}
