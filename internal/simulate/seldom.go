package simulate

import (
	"slices"
	"time"
)

// seldom is the number of histories of which one, on average, has a given combination of addSeldom.
const seldom = 60

// addSeldom chooses combinations of decisions that hardly ever come together by themselves.
func (p *Plan) addSeldom(c *Choices) {
	list := []func(*Choices){p.notModified, p.trailersAlone, p.pauseInside, p.compressPages, p.breakOffEncoded, p.refuseStreams, p.leaveInterim, p.leaveOpen}
	if n := c.Int(seldom) - (seldom - len(list)); n >= 0 {
		p.behave(7)
		p.Gateway.Timeout = 0
		list[n](c)
	}
}

// ordinary calls change with every other request that is not an upgrade, malformed, or for Kubernetes.
func (p *Plan) ordinary(c *Choices, change func(kind ClientKind, e *ExchangePlan)) {
	for i := range p.Clients {
		kind := p.Clients[i].Kind
		for k := range p.Clients[i].Requests {
			if e := &p.Clients[i].Requests[k]; !kind.upgrades() && kind != Malformed && e.Kube == KubeNothing && c.Bool(2) {
				change(kind, e)
			}
		}
	}
}

// plain200 makes a response an ordinary one.
func (r *ResponsePlan) plain200() {
	r.Status, r.Media, r.Coding, r.Half, r.Odd, r.OddFrames, r.Behind = 200, MediaOpaque, "", false, 0, 0, 0
	r.Body.Cut, r.Body.Pause = false, 0
}

// frame sets the framing of a response.
func (r *ResponsePlan) frame(framing ResponseFraming) {
	r.Framing, r.Body.Chunked = framing, framing == Chunked
}

// notModified makes targets of HTTP/2 send a 304 with the Content-Length of the content that it does not have (RFC 9110
// section 8.6).
func (p *Plan) notModified(c *Choices) {
	p.Gateway.H2Targets = true
	p.ordinary(c, func(_ ClientKind, e *ExchangePlan) {
		for i := range e.Responses {
			r := &e.Responses[i]
			r.plain200()
			r.frame(ByLength)
			r.Status, r.Body.Length = 304, int64(1+c.Int(3000))
		}
	})
}

// trailersAlone makes targets of HTTP/2 send trailers after a body with Content-Length 0.
func (p *Plan) trailersAlone(c *Choices) {
	p.Gateway.H2Targets = true
	p.ordinary(c, func(_ ClientKind, e *ExchangePlan) {
		for i := range e.Responses {
			r := &e.Responses[i]
			r.plain200()
			r.frame(ByLength)
			r.Body.Length, r.Trailer, r.Forget = 0, [][2]string{{"X-Trailing-0", "a"}}, false
		}
	})
}

// pauseInside makes targets pause after a header for longer than WriteTimeout.
func (p *Plan) pauseInside(c *Choices) {
	if p.Gateway.H2Targets {
		return // whose targets don't
	}
	p.Gateway.WriteTimeout, p.Gateway.BodyTimeout = seconds(5), 6*p.Gateway.BodyTimeout
	for i := range p.Clients {
		client := &p.Clients[i]
		if client.Kind == HTTP10 {
			client.Kind = HTTP2
		}
		client.Frames.Late = 0
		for k := range client.Requests {
			e := &client.Requests[k]
			e.Trailer, e.HalfClose = nil, false
		}
	}
	p.ordinary(c, func(_ ClientKind, e *ExchangePlan) {
		for i := range e.Responses {
			r := &e.Responses[i]
			r.plain200()
			r.frame(Chunked)
			r.Body.Length, r.HeaderPause = int64(1+c.Int(3000)), seconds(7+c.Int(10))
		}
	})
}

// kindOf returns the filter of a name.
func kindOf(name string) int {
	return slices.IndexFunc(filterKinds, func(k filterKind) bool { return k.name == name })
}

// compressPages makes clients send HEAD requests for pages that replace a response, and are compressed.
func (p *Plan) compressPages(c *Choices) {
	p.Gateway.Filters = append(p.Gateway.Filters, FilterPlan{Kind: kindOf("Compress"), A: Pick(c, 0, 2), B: c.Int(filterOptions)},
		FilterPlan{Kind: kindOf("ErrorPages"), A: c.Int(filterOptions), B: c.Int(4)})
	p.ordinary(c, func(_ ClientKind, e *ExchangePlan) {
		if e.hasBody() {
			return
		}
		e.Method, e.Accept = "HEAD", Pick(c, "gzip", "zstd, gzip;q=0.5")
		for i := range e.Responses {
			e.Responses[i].plain200()
			e.Responses[i].Status = 404
		}
	})
}

// breakOffEncoded makes clients break off an encoded body before its first byte: a decoder may take that for the end of an
// empty content.
func (p *Plan) breakOffEncoded(c *Choices) {
	p.Gateway.Filters = append(p.Gateway.Filters, FilterPlan{Kind: kindOf("Decompress")})
	p.ordinary(c, func(kind ClientKind, e *ExchangePlan) {
		if kind.overHTTP2() {
			return // where a stream that ends is that of a whole body
		}
		e.Method, e.Coding, e.Expect, e.HalfClose, e.Trailer = "POST", Pick(c, "zstd", "gzip"), false, false, nil
		e.Body = BodyPlan{Length: int64(1 + c.Int(3000)), Chunked: kind == HTTP1 && c.Bool(2), Cut: true, How: FaultFIN}
	})
}

// refuseStreams makes targets of HTTP/2 refuse requests, each on its first connection, so that they are retried on another one.
func (p *Plan) refuseStreams(c *Choices) {
	p.Gateway.H2Targets, p.Gateway.RetryErrors, p.Gateway.Tries = true, true, 0
	for i := range p.Targets {
		if t := &p.Targets[i]; !t.ByFrames {
			t.ByFrames, t.Frames = true, FramesPlan{Window: 65535, Step: 65535, Table: 4096}
		}
	}
	p.ordinary(c, func(_ ClientKind, e *ExchangePlan) {
		if !e.hasBody() {
			e.Responses[0].beOddFrames(1 + c.Int(3))
			e.Responses = append(e.Responses, e.Responses[0])
			e.Responses[len(e.Responses)-1].plain200()
		}
	})
}

// leaveInterim makes clients of HTTP/2 leave while interim responses are written that exceed their windows.
func (p *Plan) leaveInterim(c *Choices) {
	if p.Gateway.H2Targets {
		return // whose interim responses are short
	}
	for i := range p.Clients {
		p.Clients[i].Links.Manners.Window = 8 << 10
	}
	p.ordinary(c, func(kind ClientKind, e *ExchangePlan) {
		if kind.overHTTP2() && !e.hasBody() {
			e.GiveUp = time.Duration(2+c.Int(60)) * time.Millisecond
			for i := range e.Responses {
				e.Responses[i].Interim, e.Responses[i].Padding, e.Responses[i].Delay = 4+c.Int(8), 4000+c.Int(4000), 0
			}
		}
	})
}
