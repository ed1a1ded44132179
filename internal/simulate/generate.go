package simulate

import (
	"fmt"
	"slices"
	"time"
)

// NewPlan makes a plan from choices. 0 always chooses the simplest alternative: a plan of
// zeros only is one client, one GET and one target.
func NewPlan(c *Choices) *Plan {
	p := &Plan{Gateway: newGatewayPlan(c)}
	for i := range 1 + c.Int(3) {
		p.Targets = append(p.Targets, newTargetPlan(c, i))
	}
	token := uint32(1)
	for range 1 + c.Int(4) {
		p.Clients = append(p.Clients, newClientPlan(c, &token))
	}
	p.boundTargets()
	for range c.Int(3) {
		p.Changes = append(p.Changes, ChangePlan{At: someTime(c), Kind: ChangeKind(c.Int(2)), Arg: c.Int(3)})
	}
	p.chooseUpstream(c)
	p.addManners(c)
	p.addFrames(c)
	p.addStale(c)
	p.addEnds(c)
	p.addContents(c)
	p.addKube(c)
	p.addHooks(c)
	p.addResent(c)
	p.addMute(c)
	p.addSeldom(c)
	p.addScene(c)
	p.addBad(c)
	p.addResumed(c)
	p.addDialPanics(c)
	p.addFewStreams(c)
	p.addPlaces(c)
	p.addRaised(c)
	p.addTables(c)
	p.addHalted(c)
	p.addObserved(c)
	p.addNegative(c)
	p.addOwnBalance(c)
	p.addBodyRequests(c)
	p.addServer(c)
	p.addExpect10(c)
	p.addStays(c)
	p.addPages(c)
	p.addWaiting(c)
	p.addBases(c)
	p.addIntroduced(c)
	p.addDrains(c)
	p.addFloors(c)
	p.Gateway.LateEnd = c.Bool(3)
	p.addDynamic(c)
	p.addStreamed(c)
	p.addSpelt(c)
	p.addLeaving(c)
	return p
}

// boundTargets sets timeouts for targets if the gateway may not notice that a client has
// disconnected, so that an exchange with a silent target would never end: net/http does not
// while another request of the client waits to be read, and no server does while the client's
// link is silent.
func (p *Plan) boundTargets() {
	for i := range p.Clients {
		c := &p.Clients[i]
		if c.Pipelined || c.Kind == Malformed || slices.ContainsFunc(c.Links.There, func(f Fault) bool { return f.Kind == FaultSilence }) {
			p.Gateway.BodyTimeout = max(p.Gateway.BodyTimeout, 5*time.Second)
			p.Gateway.HeaderTimeout = max(p.Gateway.HeaderTimeout, 5*time.Second)
		}
	}
}

// someTime chooses a moment in the first seconds, in which most of a history happens.
func someTime(c *Choices) time.Duration {
	return time.Duration(c.Int(100)) * time.Duration(c.Int(40)) * time.Millisecond
}

// newTargetPlan chooses the ith target.
func newTargetPlan(c *Choices, i int) TargetPlan {
	p := TargetPlan{Addr: fmt.Sprintf("10.0.0.%d:80", i+1), Links: newLinksPlan(c)}
	for range c.Int(3) {
		p.Dials = append(p.Dials, Dialling{Delay: time.Duration(c.Int(30)) * time.Millisecond, Refuse: c.Bool(3), Hang: c.Bool(12)})
	}
	if c.Bool(4) {
		p.IdleClose = time.Duration(1+c.Int(50)) * 100 * time.Millisecond
	}
	return p
}

// newLinksPlan chooses how the connections of a party behave.
func newLinksPlan(c *Choices) LinksPlan {
	p := LinksPlan{Seed: c.Seed(), Manners: Link{
		Delay:   time.Duration(1+c.Int(20)) * 100 * time.Microsecond,
		Jitter:  time.Duration(c.Int(4)) * time.Millisecond,
		Segment: Pick(c, 0, 1460, 100, 7),
		Window:  Pick(c, 64<<10, 8<<10),
	}}
	if c.Bool(3) {
		p.There, p.Back = newFaults(c), newFaults(c)
	}
	return p
}

// newFaults chooses the faults of the first connections, in one direction.
func newFaults(c *Choices) []Fault {
	var list []Fault
	for range c.Int(4) {
		f := Fault{Kind: FaultKind(c.Int(5)), At: int64(c.Int(Pick(c, 400, 4000, 80000)))}
		if f.Kind == FaultPause {
			f.Pause = time.Duration(1+c.Int(300)) * 100 * time.Millisecond
		}
		list = append(list, f)
	}
	return list
}

// newClientPlan chooses a client. The first of its requests has the token.
func newClientPlan(c *Choices, token *uint32) ClientPlan {
	p := ClientPlan{Kind: ClientKind(c.Int(int(kinds))), Start: time.Duration(c.Int(50)) * time.Duration(c.Int(30)) * time.Millisecond, Links: newLinksPlan(c)}
	p.Pipelined = p.Kind == HTTP1 && c.Bool(6)
	if p.Pipelined && c.Bool(3) {
		p.LateByte = time.Duration(1+c.Int(100)) * time.Millisecond
	}
	p.TLS = p.Kind != HTTP10 && c.Bool(8)
	requests := 1 + c.Int(5)
	if p.Kind == Frames || p.Kind == WebSocket2 {
		p.Frames = newFramesPlan(c)
		if p.Kind == Frames && c.Bool(12) {
			requests += c.Int(40)
		}
	}
	for range requests {
		p.Requests = append(p.Requests, newExchangePlan(c, p.Kind, *token))
		*token++
	}
	return p
}

// newExchangePlan chooses a request and how targets respond to it.
func newExchangePlan(c *Choices, kind ClientKind, token uint32) ExchangePlan {
	e := ExchangePlan{
		Token:  token,
		Wait:   time.Duration(c.Int(20)) * time.Duration(c.Int(60)) * time.Millisecond,
		Path:   Pick(c, "", "/a", "//b%2Fc", "/%7euser/../x", "/a;v=1/", "/%E2%82%AC"),
		Query:  Pick(c, "", "a=1&b=2", "a;b&c=%zz", "=&&%20+", "a=1&b=2&%61=3"),
		Key:    c.Bool(8),
		Header: newFields(c, "X-Sent"),
	}
	for range 1 + c.Int(3) {
		e.Responses = append(e.Responses, newResponsePlan(c, kind))
	}
	if c.Bool(10) {
		e.GiveUp = time.Duration(c.Int(100)) * time.Duration(1+c.Int(100)) * time.Millisecond
	}
	if c.Bool(10) {
		e.ReadPause = time.Duration(c.Int(100)) * time.Millisecond * 20
	}
	if kind.upgrades() {
		e.Method = "GET"
		e.Tunnel = newTunnelPlan(c)
		return e
	}
	if kind == Malformed {
		newMalformation(c, &e)
		return e
	}
	e.Method = Pick(c, "GET", "POST", "PUT", "HEAD", "DELETE", "OPTIONS")
	if e.Method == "POST" || e.Method == "PUT" || c.Bool(12) {
		e.Body = newBodyPlan(c)
		e.Body.Chunked = e.Body.Chunked && kind != HTTP10
		e.Expect = kind != HTTP10 && e.Body.Length > 0 && c.Bool(5)
		if e.Expect {
			newExpectManner(c, &e)
		}
		if e.Body.Chunked || kind.overHTTP2() && e.Body.Length > 0 {
			e.Trailer = newFields(c, "X-Trailing")
		}
	}
	if c.Bool(2) {
		e.newRequestFields(c)
	}
	e.HalfClose = (kind == HTTP1 || kind == HTTP10) && c.Bool(12)
	return e
}

// newFields chooses header fields or trailers.
func newFields(c *Choices, prefix string) (fields [][2]string) {
	for i := range c.Int(3) {
		fields = append(fields, [2]string{fmt.Sprintf("%s-%d", prefix, i), Pick(c, "a", "b, c", `"q;\"`, "\u00e9")})
	}
	return fields
}

// newBodyPlan chooses a body.
func newBodyPlan(c *Choices) BodyPlan {
	b := BodyPlan{Length: int64(c.Int(Pick(c, 20, 3000, 20, 3000, 20, 3000, 20, 3000, 70000, 300000)))}
	b.Chunked = c.Bool(2)
	b.Piece = Pick(c, 0, 1000, 100, 30000)
	if b.Piece > 0 {
		b.Piece = max(b.Piece, int(b.Length/100))
	}
	if c.Bool(4) {
		b.Pause = time.Duration(c.Int(100)) * time.Duration(1+c.Int(10)) * time.Millisecond
	}
	if b.Length > 0 && c.Bool(12) {
		b.Cut, b.CutAt, b.How = true, int64(c.Int(int(b.Length))), Pick(c, FaultReset, FaultFIN, FaultSilence)
	}
	return b
}

// newResponsePlan chooses what a target does with a request.
func newResponsePlan(c *Choices, kind ClientKind) ResponsePlan {
	r := ResponsePlan{
		Status:  Pick(c, 200, 404, 503, 204, 304, 500, 302),
		Interim: max(0, c.Int(8)-4),
		Framing: ResponseFraming(c.Int(3)),
		Body:    newBodyPlan(c),
		Early:   c.Bool(5),
		Close:   c.Bool(8),
	}
	r.Body.Chunked = r.Framing == Chunked
	if c.Bool(4) {
		r.Delay = time.Duration(c.Int(60)) * time.Duration(1+c.Int(1000)) * time.Millisecond
	}
	if r.Framing == Chunked {
		r.Trailer = newFields(c, "X-Trailing")
		r.Forget = c.Bool(8)
	}
	switch c.Int(40) {
	case 37:
		r.Never = true
	case 38:
		r.Garbage = true
	case 39:
		if r.Framing != ByClose {
			r.Behind = 1 + c.Int(40)
		}
	}
	if c.Bool(2) {
		r.newRepresentation(c)
	}
	if c.Bool(10) {
		r.Odd = 1 + c.Int(len(oddities))
		r.Media, r.Coding, r.Half, r.Cache = 0, "", false, ""
	}
	return r
}

// newTunnelPlan chooses what goes through a tunnel.
func newTunnelPlan(c *Choices) TunnelPlan {
	t := TunnelPlan{Up: newBodyPlan(c), Down: newBodyPlan(c), Early: c.Bool(3), ClientFirst: c.Bool(2)}
	switch c.Int(10) {
	case 7:
		t.BadSwitch = 1 + c.Int(len(badSwitches))
	case 8:
		t.TargetRefuse = Pick(c, 404, 426, 200, 503)
	case 9:
		t.BadAccept = true
	}
	return t
}
