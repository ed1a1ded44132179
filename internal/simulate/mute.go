package simulate

import "time"

// addMute chooses tunnels of which one end sends nothing after its message, not even a Close frame, while the other end reads
// nothing for a while: when the gateway ends such a tunnel, it must wait for the bytes on their way, and for no more.
func (p *Plan) addMute(c *Choices) {
	if !c.Bool(6) {
		return
	}
	for i := range p.Clients {
		client := &p.Clients[i]
		if !client.Kind.upgrades() {
			continue
		}
		at := client.Start
		for k := range client.Requests {
			e := &client.Requests[k]
			if at += e.Wait; !c.Bool(2) {
				continue
			}
			window := p.Targets[0].Links.Manners.Window
			if !e.Tunnel.ClientFirst {
				window = client.Links.Manners.Window
			}
			e.beMute(c, window)
			p.Changes = append(p.Changes, ChangePlan{At: at + time.Duration(1+c.Int(40))*20*time.Millisecond, Kind: CloseTunnels})
		}
	}
}

// beMute gives a tunnel a mute end. Its message is a little larger than the window of the other end: the gateway has received
// all of it, and waits for the window.
func (e *ExchangePlan) beMute(c *Choices, window int) {
	t := &e.Tunnel
	e.Method = "GET"
	t.Mute, t.Nap, t.Posted = true, time.Duration(1+c.Int(18))*50*time.Millisecond, 0
	t.TargetRefuse, t.BadAccept, t.BadSwitch = 0, false, 0
	long := BodyPlan{Length: int64(window + c.Int(Pick(c, 1500, 30000)))}
	if t.Up.calm(); t.ClientFirst {
		t.Up = long
	}
	if t.Down.calm(); !t.ClientFirst {
		t.Down = long
	}
}

// tunnelEnd says what one end of a tunnel does.
type tunnelEnd struct {
	masked bool          // it is the client
	pace   *BodyPlan     // of what it sends
	first  bool          // it closes when its own message is out; the other end replies
	mute   bool          // it sends no Close frame
	nap    time.Duration // before it reads
}

// clientEnd is the client's.
func (t *TunnelPlan) clientEnd() tunnelEnd {
	return t.end(tunnelEnd{masked: true, pace: &t.Up, first: t.ClientFirst})
}

// targetEnd is the target's.
func (t *TunnelPlan) targetEnd() tunnelEnd {
	return t.end(tunnelEnd{pace: &t.Down, first: !t.ClientFirst})
}

func (t *TunnelPlan) end(e tunnelEnd) tunnelEnd {
	if e.first {
		e.mute = t.Mute
	} else {
		e.nap = t.Nap
	}
	return e
}
