package simulate

import "time"

// addManners changes a finished plan, by decisions at the end of the list of choices: lists that were recorded before such
// a decision was added keep their meaning.
func (p *Plan) addManners(c *Choices) {
	p.behave(c.Int(8))
	for i := range p.Clients {
		for k := range p.Clients[i].Requests {
			p.Clients[i].Requests[k].addManners(c)
		}
	}
	if c.Bool(4) {
		p.Changes = append(p.Changes, ChangePlan{At: someTime(c), Kind: CloseTunnels})
	}
}

// addManners chooses additional properties of a request and of its responses.
func (e *ExchangePlan) addManners(c *Choices) {
	if c.Bool(6) {
		e.Forbidden = Pick(c, "X-Forwarded-For", "Host", "Connection", "Authorization", "Forwarded", "Cookie")
	}
	e.Tunnel.Joined = c.Bool(3)
	for i := range e.Responses {
		r := &e.Responses[i]
		switch c.Int(10) {
		case 6:
			r.HeaderPause = time.Duration(1+c.Int(30)) * 300 * time.Millisecond
		case 7:
			r.Drip = time.Duration(1+c.Int(100)) * 20 * time.Millisecond
		case 8:
			r.Interim, r.Padding = 1+c.Int(4), c.Int(8000)
		case 9:
			r.Linger = time.Duration(c.Int(30)) * 100 * time.Millisecond
		}
		if r.Framing == Chunked && c.Bool(6) {
			r.Forbidden = Pick(c, "Connection", "Set-Cookie", "Authorization", "Location")
		}
	}
}

// behave removes the faults of some parties from a plan: rules about a party without faults must be checked in histories
// in which it has none, while the others do.
func (p *Plan) behave(who int) {
	links, targets, clients := who == 4, who == 5 || who == 7, who == 6 || who == 7
	for i := range p.Targets {
		t := &p.Targets[i]
		if links || targets {
			t.Links.There, t.Links.Back = nil, nil
		}
		if targets {
			t.Dials, t.IdleClose = nil, 0
		}
	}
	for i := range p.Clients {
		client := &p.Clients[i]
		if links || clients {
			client.Links.There, client.Links.Back = nil, nil
		}
		for k := range client.Requests {
			e := &client.Requests[k]
			if clients {
				e.GiveUp, e.ReadPause = 0, 0
				e.Body.calm()
				e.Tunnel.Up.calm()
			}
			if targets {
				e.Tunnel.BadAccept = false
				e.Tunnel.Down.calm()
				for n := range e.Responses {
					e.Responses[n].calm()
				}
			}
		}
	}
}

// calm makes a body that comes to its end, without long pauses.
func (b *BodyPlan) calm() {
	b.Cut = false
	b.Pause = min(b.Pause, 5*time.Millisecond)
}

// calm makes a response that comes to its end, in a second.
func (r *ResponsePlan) calm() {
	r.Never, r.Garbage, r.Behind = false, false, 0
	r.Delay, r.HeaderPause, r.Drip = min(r.Delay, time.Second), min(r.HeaderPause, time.Second), min(r.Drip, 20*time.Millisecond)
	r.Body.calm()
}
