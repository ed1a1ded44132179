package simulate

import (
	"slices"
	"time"
)

// scenes produce situations that need several decisions which are seldom made together: each adds clients to a plan, and
// changes the gateway and its targets for them. New ones are added at the end.
var scenes = []func(*Plan, *Choices){
	(*Plan).sceneDropped,
	(*Plan).sceneLateReader,
	(*Plan).sceneUnread,
	(*Plan).sceneRefusedBody,
	(*Plan).sceneUnasked,
	(*Plan).sceneHandedOver,
	(*Plan).scenePanic,
	(*Plan).sceneSlowTarget,
	(*Plan).sceneInstead,
	(*Plan).sceneAround,
	(*Plan).sceneFirstByte,
}

// addScene chooses histories with a scene.
func (p *Plan) addScene(c *Choices) {
	if n := c.Int(40); n > 0 && n <= len(scenes) && !p.Gateway.H2Targets {
		scenes[n-1](p, c)
		p.boundTargets() // again: the scene has set timeouts
	}
}

// join adds a client of HTTP/1.1 over a link without faults, which sends n times a GET whose response has a small body.
func (p *Plan) join(c *Choices, n int) *ClientPlan {
	token := uint32(1)
	for i := range p.Clients {
		token += uint32(len(p.Clients[i].Requests))
	}
	client := ClientPlan{Kind: HTTP1, Start: time.Duration(c.Int(50)) * 10 * time.Millisecond, Links: newLinksPlan(c)}
	client.Links.There, client.Links.Back = nil, nil
	for i := range n {
		client.Requests = append(client.Requests, ExchangePlan{Token: token + uint32(i), Method: "GET", Responses: []ResponsePlan{{
			Status: 200, Body: BodyPlan{Length: int64(c.Int(3000))},
		}}})
	}
	p.Clients = append(p.Clients, client)
	return &p.Clients[len(p.Clients)-1]
}

// post gives a request a body.
func (e *ExchangePlan) post(c *Choices) {
	e.Method = Pick(c, "POST", "PUT")
	e.Body = BodyPlan{Length: int64(1 + c.Int(3000)), Chunked: c.Bool(2)}
}

// wellTargets removes the faults of targets and of their links.
func (p *Plan) wellTargets() {
	for i := range p.Targets {
		t := &p.Targets[i]
		t.Dials, t.IdleClose, t.Links.There, t.Links.Back = nil, 0, nil, nil
		p.Upstream.Targets[i].Down, p.Upstream.Targets[i].Ill = false, nil
	}
}

// sceneDropped: responses that are dropped for another target's because of their status, and whose body comes late. Their
// connections must not carry the next requests.
func (p *Plan) sceneDropped(c *Choices) {
	if len(p.Targets) == 1 {
		p.Targets = append(p.Targets, newTargetPlan(c, 1))
		p.Upstream.Targets = append(p.Upstream.Targets, UpstreamTarget{})
	}
	p.wellTargets()
	p.Gateway.RetryStatus, p.Gateway.Tries = true, 0
	for range 1 + c.Int(2) {
		client := p.join(c, 2+c.Int(4))
		for i := range client.Requests {
			e := &client.Requests[i]
			e.Wait = time.Duration(c.Int(20)) * time.Millisecond
			late := ResponsePlan{Status: 503, Framing: ResponseFraming(c.Int(2)), Body: BodyPlan{Length: int64(1 + c.Int(3000))}}
			late.HeaderPause = time.Duration(1+c.Int(30)) * 50 * time.Millisecond
			e.Responses = slices.Insert(e.Responses, 0, late)
		}
	}
}

// sceneLateReader: a client that accepts nothing for a while, and a response that does not fit into its window: one of the
// gateway's own, one after interim responses, or an ordinary one.
func (p *Plan) sceneLateReader(c *Choices) {
	g := &p.Gateway
	if c.Bool(2) {
		p.Upstream.FailLatency = time.Second
	}
	if c.Int(3) > 0 {
		g.WriteTimeout = seconds(5)
	}
	if c.Bool(2) {
		p.wellTargets()
	}
	if c.Bool(2) {
		g.Filters = nil
	}
	client := p.join(c, 1+c.Int(3))
	client.Links.Manners.Window = Pick(c, 2<<10, 500, 100)
	client.TLS = c.Bool(8)
	for i := range client.Requests {
		e := &client.Requests[i]
		e.ReadAfter = time.Duration(c.Int(30)) * Pick(c, 100*time.Millisecond, time.Second, 5*time.Second)
		r := &e.Responses[0]
		switch c.Int(5) {
		case 1, 2:
			r.Garbage = true
		case 3, 4:
			r.Interim, r.Padding = 1+c.Int(4), c.Int(8000)
			r.Status = Pick(c, 200, 404, 500)
		}
	}
}

// sceneUnread: requests that do not fit into the window of a target which reads nothing, and clients that leave meanwhile.
func (p *Plan) sceneUnread(c *Choices) {
	for i := range p.Targets {
		links := &p.Targets[i].Links
		links.Manners.Window = 8 << 10
		links.There = nil
		for range 1 + c.Int(4) {
			links.There = append(links.There, Fault{Kind: FaultSilence, At: int64(1 + c.Int(5000))})
		}
	}
	client := p.join(c, 1+c.Int(3))
	for i := range client.Requests {
		e := &client.Requests[i]
		e.Large = 9000 + c.Int(20000)
		e.GiveUp = time.Duration(1+c.Int(30)) * 100 * time.Millisecond
	}
}

// sceneRefusedBody: a filter refuses requests whose bodies do not end.
func (p *Plan) sceneRefusedBody(c *Choices) {
	refuses := slices.IndexFunc(filterKinds, func(k filterKind) bool { return k.name == ambiguityKind.name })
	p.Gateway.Filters = slices.Insert(p.Gateway.Filters, c.Int(len(p.Gateway.Filters)+1), FilterPlan{Kind: refuses, A: 1})
	p.wellTargets()
	client := p.join(c, 1+c.Int(3))
	for i := range client.Requests {
		e := &client.Requests[i]
		e.Path = "//b%2Fc"
		e.post(c)
		e.Body.silent(c)
	}
}

// silent ends a body early, by silence.
func (b *BodyPlan) silent(c *Choices) {
	b.Cut, b.CutAt, b.How = true, int64(c.Int(int(b.Length))), FaultSilence
}

// sceneUnasked: a client waits for a 100, receives a final response instead, and leaves while the target pauses.
func (p *Plan) sceneUnasked(c *Choices) {
	p.Gateway.BodyTimeout, p.Gateway.Timeout = 0, 0
	p.wellTargets()
	client := p.join(c, 2+c.Int(2))
	for i := range client.Requests {
		e := &client.Requests[i]
		e.post(c)
		e.Expect, e.Manner = true, ExpectForEver
		e.Wait = time.Duration(c.Int(20)) * time.Second
		e.GiveUp = time.Duration(1+c.Int(30)) * 100 * time.Millisecond
		r := &e.Responses[0]
		r.Early, r.Framing = true, ResponseFraming(c.Int(2))
		r.Body.Length++
		r.Body.silent(c)
	}
	client.Requests[len(client.Requests)-1].Wait = 30 * time.Second // else silent targets would give up too soon
}

// sceneHandedOver: targets end connections that they have kept, are slow to accept the next ones, and others become idle
// meanwhile.
func (p *Plan) sceneHandedOver(c *Choices) {
	p.Gateway.Transport, p.Gateway.MaxIdle, p.Gateway.MaxConnRequests = false, 0, 0
	p.wellTargets()
	if c.Bool(2) {
		p.Gateway.Filters = nil
	}
	for i := range p.Targets {
		p.Upstream.Targets[i].Down = i > 0
		for range 8 {
			p.Targets[i].Dials = append(p.Targets[i].Dials, Dialling{Delay: time.Duration(1+c.Int(30)) * 10 * time.Millisecond})
		}
	}
	for range 2 + c.Int(2) {
		client := p.join(c, 2+c.Int(4))
		client.Start %= 100 * time.Millisecond
		for i := range client.Requests {
			e := &client.Requests[i]
			e.Wait = time.Duration(c.Int(20)) * 10 * time.Millisecond
			r := &e.Responses[0]
			r.Delay = time.Duration(c.Int(20)) * 10 * time.Millisecond
			if c.Bool(3) {
				r.Stale = Pick(c, StaleClosed, StaleReset)
			}
			e.Responses = append(e.Responses, ResponsePlan{Status: 200, Delay: r.Delay})
		}
	}
}

// scenePanic: a hook panics before the body is read, and a part of the body is not sent.
func (p *Plan) scenePanic(c *Choices) {
	p.wellTargets()
	client := p.join(c, 1+c.Int(3))
	for i := range client.Requests {
		e := &client.Requests[i]
		e.post(c)
		if e.Panics = c.Int(4) > 0; e.Panics {
			e.Body.silent(c)
		}
	}
}

// sceneSlowTarget: a target takes longer to respond than the client may take for a piece of its body.
func (p *Plan) sceneSlowTarget(c *Choices) {
	g := &p.Gateway
	g.ReadTimeout, g.HeaderTimeout, g.Timeout = seconds(5), seconds(60), 0
	p.wellTargets()
	client := p.join(c, 1+c.Int(3))
	for i := range client.Requests {
		e := &client.Requests[i]
		e.post(c)
		if c.Bool(2) {
			e.Responses[0].Interim = 1
		}
		e.Responses[0].Delay = time.Duration(c.Int(30)) * time.Second
	}
}

// sceneInstead: a program's page replaces a response, long after the deadline of the interim response before it. With a
// server's WriteTimeout, only that bounds the page, and no interim response may change it; it is longer than a history
// lasts.
func (p *Plan) sceneInstead(c *Choices) {
	g := &p.Gateway
	g.WriteTimeout, g.HeaderTimeout, g.Timeout = seconds(5), seconds(60), 0
	if c.Bool(2) {
		g.Filters = nil
	}
	if c.Bool(2) {
		g.ServerWrite = 9 * time.Minute
	}
	g.Hooks.Modify = ModifyReplaces
	p.wellTargets()
	client := p.join(c, 1+c.Int(3))
	for i := range client.Requests {
		r := &client.Requests[i].Responses[0]
		r.Interim, r.Status, r.Delay = 1, 404, time.Duration(6+c.Int(10))*time.Second
	}
}
