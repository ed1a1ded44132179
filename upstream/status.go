package upstream

import "iter"

// Status is the current state of a target.
type Status struct {
	// Target is the target as configured, with its defaults filled in.
	Target Target
	// Healthy reports whether the target is available as far as its health is concerned; a
	// Down target is not, nor a drained one.
	Healthy bool
	// Drained reports whether Group.SetDrained has taken the target out.
	Drained bool
	// Ejected reports whether failures have taken the target out (Target.MaxFails): it is not Healthy until
	// FailTimeout has passed, and then gets one request at a time, until one succeeds.
	Ejected bool
	// Unhealthy reports whether its checks have failed (Check.Fall).
	Unhealthy bool
	// CheckErr is the failure of the last check that counted (Check); nil if that was good, or if there was none yet.
	CheckErr error
	// InFlight is the number of the target's requests and tunnels in flight.
	InFlight int
	// Fails is the number of failures within FailTimeout, at most MaxFails, so 0
	// if that is 0.
	Fails int
}

// Targets returns the current state of each target, in the order given.
func (g *Group) Targets() iter.Seq[Status] {
	return func(yield func(Status) bool) {
		for _, m := range g.set.Load().members {
			s := Status{
				Target: m.Target, Healthy: m.healthy(), Drained: m.drained, Ejected: m.failing(), Unhealthy: m.unhealthy.Load(),
				InFlight: int(m.inFlight.Load()), Fails: m.countFails(),
			}
			if err := m.checkErr.Load(); err != nil {
				s.CheckErr = *err
			}
			if !yield(s) {
				return
			}
		}
	}
}

// InFlight returns the number of requests and tunnels of the whole group, waiting
// requests included.
func (g *Group) InFlight() int { return g.gate.Running() }

// Waiting returns how many requests wait for a target, or for the first list of Options.Source.
func (g *Group) Waiting() int {
	g.queue.mu.Lock()
	defer g.queue.mu.Unlock()
	return g.queue.waiting.Len() + int(g.first.waiting.Load())
}
