package simulate

import (
	"net/http"

	"github.com/culvert-go/culvert/upstream"
)

// addLeaving chooses histories with targets that leave (upstream.Target.Draining): they get only the requests that want them
// (upstream.Affinity).
func (p *Plan) addLeaving(c *Choices) {
	g := &p.Gateway
	if !c.Bool(8) || g.Dynamic || g.Balance == 6 || len(p.Targets) == 1 {
		return
	}
	g.Affine = true
	for i := range p.Upstream.Targets {
		p.Upstream.Targets[i].Leaves = i > 0 && c.Bool(2)
	}
}

// wants returns the number of the target that a request wants, negative for none.
func (p *Plan) wants(token uint32) int {
	if token%3 != 0 || token == 0 {
		return -1
	}
	return int(token/3) % len(p.Targets)
}

// affine returns b, or a balance that sends requests to the targets that they want.
func (p *Plan) affine(b upstream.Balance) upstream.Balance {
	if !p.Gateway.Affine {
		return b
	}
	return upstream.Affinity(upstream.AffinityOptions{Otherwise: b, Key: func(t upstream.Target) string { return t.Addr }, Want: func(r *http.Request) string {
		token, _ := tokenOf(r.URL.Path)
		if n := p.wants(token); n >= 0 {
			return p.Targets[n].Addr
		}
		return ""
	}})
}

// leaves: a target that leaves gets no request but those that want it.
func (r *ruler) leaves() {
	if !r.w.plan.Gateway.Affine {
		return
	}
	wanted := ""
	if n := r.w.plan.wants(r.e.Token); n >= 0 {
		wanted = r.w.plan.Targets[n].Addr
	}
	for _, s := range r.sights {
		for i, t := range r.w.plan.Targets {
			if t.Addr != s.Target || !r.w.plan.Upstream.Targets[i].Leaves {
				continue
			}
			if s.Target != wanted {
				r.fail("leaves", "%s saw it, which is Draining, and the request wants %q", s.Target, wanted)
			} else {
				r.w.journal.manners.Add("target: a request that wants it, which leaves", 1)
			}
		}
	}
}
