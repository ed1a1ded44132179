package simulate

// leaveOpen makes targets of HTTP/2 end the streams of their responses to HEAD long after the header, and after HeaderTimeout.
func (p *Plan) leaveOpen(c *Choices) {
	p.Gateway.H2Targets, p.Gateway.HeaderTimeout = true, seconds(5)
	for i := range p.Targets {
		if t := &p.Targets[i]; !t.ByFrames {
			t.ByFrames, t.Frames = true, FramesPlan{Window: 65535, Step: 65535, Table: 4096}
		}
	}
	p.ordinary(c, func(_ ClientKind, e *ExchangePlan) {
		if e.hasBody() {
			return
		}
		e.Method = "HEAD"
		for i := range e.Responses {
			r := &e.Responses[i]
			r.plain200()
			r.Apart, r.EndPause = true, seconds(c.Int(40))
		}
	})
}
