package upstream

import "iter"

// Status is how a target does at the moment.
type Status struct {
	// Target is what was configured, defaults filled in.
	Target Target
	// Healthy reports whether the target may be asked as far as its health goes.
	Healthy bool
	// InFlight is the number of requests and tunnels that it has.
	InFlight int
	// Fails is the number of failures within FailTimeout, at most MaxFails.
	Fails int
}

// Targets returns how each target of the moment does, in the order given.
func (g *Group) Targets() iter.Seq[Status] {
	return func(yield func(Status) bool) {
		for _, m := range g.set.Load().members {
			if !yield(Status{m.Target, m.healthy(), int(m.inFlight.Load()), m.countFails()}) {
				return
			}
		}
	}
}

// InFlight returns the number of requests and tunnels of the whole group, those
// that wait included.
func (g *Group) InFlight() int { return g.gate.Running() }

// Waiting returns how many requests wait for a target, or for the first list of Options.Source.
func (g *Group) Waiting() int {
	g.queue.mu.Lock()
	defer g.queue.mu.Unlock()
	return g.queue.waiting.Len() + int(g.first.waiting.Load())
}
