package simulate

import (
	"slices"
	"time"
)

// tunnel: bytes of a tunnel arrive in their order, and all of them if nothing was cut.
func (r *ruler) tunnel() {
	o := r.o
	if o.Tunnel == nil {
		return
	}
	if err := o.Tunnel.Err(); err != nil {
		r.fail("tunnel", "the client read %v", err)
	}
	n := len(r.sights) - 1 // those before have failed
	if n < 0 || r.sights[n].Tunnel == nil {
		r.fail("tunnel", "a 101 that no target sent")
		return
	}
	s := r.sights[n]
	if err := s.Tunnel.Err(); err != nil {
		r.fail("tunnel", "%s read %v", s.Target, err)
	}
	if r.faulty() || r.e.Tunnel.Up.Cut || r.e.Tunnel.Down.Cut || o.LeftAlone || r.e.GiveUp > 0 {
		return
	}
	if r.client.Frames.Late > 0 {
		return // both sides may be silent for the tunnel's IdleTimeout, while the client accepts the bytes already sent
	}
	closes := slices.ContainsFunc(r.w.plan.Changes, func(c ChangePlan) bool { return c.Kind == CloseTunnels })
	// In another protocol than WebSocket only the ends themselves send Close frames.
	frames := !closes || r.e.Tunnel.Posted == 0
	if frames && !r.slow() && (!closes || r.e.Tunnel.Up.frameTime()+r.e.Tunnel.Down.frameTime() < 4*time.Second) { // the gateway waits for the end of a frame, but not for long
		if !o.Tunnel.Closed {
			r.fail("close frame", "the client saw the end without a Close frame: %v", o.TunnelEnd)
		}
		if !s.Tunnel.Closed {
			r.fail("close frame", "%s saw the end without a Close frame: %v", s.Target, s.TunnelEnd)
		}
	}
	if !o.Tunnel.Whole() && !r.e.Tunnel.ClientFirst && !closes && !r.slow() {
		r.fail("tunnel", "the client read %d bytes of %d: %v", o.Tunnel.Got, o.Tunnel.Length, o.TunnelEnd)
	}
}

// frameTime returns how long a frame takes, with the bytes before and after it in a piece. The gateway waits five seconds
// for its end.
func (b *BodyPlan) frameTime() time.Duration {
	pieces := int64(1)
	if b.Piece > 0 {
		pieces += min(b.Length, 60_014) / int64(b.Piece)
	}
	return time.Duration(pieces+1) * b.Pause
}
