package simulate

import "time"

// FramesPlan says how a client or target that speaks HTTP/2 by frames treats its connections.
type FramesPlan struct {
	Window  uint32        // of a stream at its beginning
	Step    uint32        // by which a closed window opens
	Late    time.Duration // before it opens
	Stingy  bool          // the connection's window is opened late, too
	Table   uint32        // of the header compression towards the client
	Split   int           // the bytes of a header block in a frame; 0: all
	Padding uint8         // of each frame of DATA
	Pings   int
	Changes []SettingsChange
	// GoAway is the number of requests after which this side sends a GOAWAY; 0: never.
	GoAway int
	// Streams is how many open streams a target allows; 0: any number.
	Streams uint32
	Refuses bool        // those beyond that
	Bad     []BadStream // of a client
}

// SettingsChange is a change of the windows of all streams at a moment.
type SettingsChange struct {
	After  time.Duration
	Window uint32
}

// newFramesPlan chooses a FramesPlan.
func newFramesPlan(c *Choices) FramesPlan {
	p := FramesPlan{
		Window: Pick[uint32](c, 65535, 0, 1, 100, 1<<20),
		Step:   Pick[uint32](c, 65535, 16384, 1000),
		Stingy: c.Bool(5),
		Table:  Pick[uint32](c, 4096, 0, 65536),
	}
	if c.Bool(2) {
		p.Late = time.Duration(c.Int(100)) * time.Duration(c.Int(60)) * time.Millisecond
	}
	if c.Bool(4) {
		p.Split = 1 + c.Int(40)
	}
	if c.Bool(4) {
		p.Padding = uint8(c.Int(256))
	}
	if c.Bool(6) {
		p.Pings = c.Int(200)
	}
	for range max(0, c.Int(6)-3) {
		p.Changes = append(p.Changes, SettingsChange{After: someTime(c), Window: Pick[uint32](c, 0, 1000, 65535, 1<<20)})
	}
	if c.Bool(8) {
		p.GoAway = 1 + c.Int(5)
	}
	return p
}

// addFrames chooses which targets speak by frames, and how they respond.
func (p *Plan) addFrames(c *Choices) {
	if !p.Gateway.H2Targets && c.Bool(16) {
		p.Gateway.H2Targets = true
	}
	if !p.Gateway.H2Targets {
		return
	}
	for i := range p.Targets {
		t := &p.Targets[i]
		if t.ByFrames = c.Int(4) > 0; t.ByFrames {
			t.Frames = newFramesPlan(c)
			t.Frames.Streams = Pick[uint32](c, 0, 100, 250, 1000)
		}
	}
	odd := c.Int(4) > 1 // or the connections' manners alone
	for i := range p.Clients {
		for k := range p.Clients[i].Requests {
			for n := range p.Clients[i].Requests[k].Responses {
				if c.Bool(3) && odd {
					p.Clients[i].Requests[k].Responses[n].beOddFrames(1 + c.Int(len(frameOddities)))
				}
			}
		}
	}
}

// beOddFrames chooses an oddity for a response over frames.
func (r *ResponsePlan) beOddFrames(n int) {
	odd := &frameOddities[n-1]
	r.OddFrames, r.Media, r.Coding, r.Half, r.Cache, r.Trailer, r.Body.Cut = n, 0, "", false, "", nil, false
	r.Body.Length = min(r.Body.Length, 3000)
	if odd.empty {
		r.Body.Length = 0
	}
	if odd.status != 0 {
		r.Status = odd.status
	}
}

// oddConnections reports whether a target may end a connection that others use.
func (p *Plan) oddConnections() bool {
	for i := range p.Clients {
		for k := range p.Clients[i].Requests {
			for _, r := range p.Clients[i].Requests[k].Responses {
				if r.OddFrames > 0 && frameOddities[r.OddFrames-1].connection {
					return true
				}
			}
		}
	}
	return false
}
