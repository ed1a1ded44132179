package simulate

import (
	"net/http"
	"strconv"
	"sync/atomic"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/proxy"
)

// observing is what the program's Options.OnAttempt has seen.
type observing struct{ started, ended atomic.Int64 }

// attemptField is the field that Options.OnAttempt adds to each attempt, with a value of its own.
const attemptField = "X-Attempt"

// addObserved chooses histories in which the program observes attempts.
func (p *Plan) addObserved(c *Choices) { p.Gateway.Hooks.OnAttempt = c.Bool(5) }

// observeAttempts adds Options.OnAttempt, if the plan has it.
func (g *gateway) observeAttempts(o *proxy.Options) {
	if !g.plan.Gateway.Hooks.OnAttempt {
		return
	}
	o.OnAttempt = func(out *http.Request, target string) func(culvert.Attempt) {
		g.journal.effects.Add("OnAttempt adds a field", 1)
		out.Header.Add(attemptField, strconv.FormatInt(g.attempts.started.Add(1), 10))
		ended := false
		return func(a culvert.Attempt) {
			switch {
			case ended:
				g.journal.Break("observed", "the end of an attempt on %s is reported twice", target)
			case a.Target != target || a.Start.IsZero() || a.Status == 0 && a.Err == nil:
				g.journal.Break("observed", "an attempt on %s has ended as %+v", target, a)
			}
			ended = true
			g.attempts.ended.Add(1)
		}
	}
}

// checkObserved: each attempt that has begun has ended. The caller holds the journal's mutex.
func (w *world) checkObserved() {
	if started, ended := w.gateway.attempts.started.Load(), w.gateway.attempts.ended.Load(); started != ended {
		w.journal.breakAt(w.journal.now(), "observed", "%d attempts have begun, %d have ended", started, ended)
	}
}

// observed: each attempt is sent with the field of its own, and with none of another one.
func (r *ruler) observed() {
	targets := map[string]string{}
	for _, s := range r.sights {
		got := s.Header.Values(attemptField)
		if r.w.plan.Gateway.Hooks.OnAttempt != (len(got) == 1) || len(got) > 1 {
			r.fail("observed", "%s saw %s: %q, OnAttempt adds it: %v", s.Target, attemptField, got, r.w.plan.Gateway.Hooks.OnAttempt)
			continue
		}
		if len(got) == 0 {
			continue
		}
		if target, seen := targets[got[0]]; seen && target != s.Target {
			r.fail("observed", "%s and %s saw the same attempt", target, s.Target)
		}
		targets[got[0]] = s.Target
	}
}
