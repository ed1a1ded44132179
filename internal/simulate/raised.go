package simulate

import (
	"net/http"
	"strings"

	"github.com/culvert-go/culvert/proxy"
)

// Raise says which hook of the program panics with a value of its own. net/http's server logs such a value before it closes
// the connection or resets the stream.
type Raise int

const (
	// RaiseNowhere: no hook does.
	RaiseNowhere Raise = iota
	// RaiseRewrite: Options.Rewrite, before a target is picked.
	RaiseRewrite
	// RaiseModify: Options.ModifyResponse, when a target's header has arrived.
	RaiseModify
	// RaiseError: Options.OnError.
	RaiseError
)

// String returns the hook.
func (r Raise) String() string {
	return [...]string{"no hook", "Rewrite", "ModifyResponse", "OnError"}[r]
}

// addRaised chooses histories in which hooks panic with values of their own, that of checks among them.
func (p *Plan) addRaised(c *Choices) {
	if p.Gateway.Check && c.Bool(3) {
		p.Upstream.CheckPanics = 2 + c.Int(4)
	}
	if !c.Bool(10) {
		return
	}
	for i := range p.Clients {
		for k := range p.Clients[i].Requests {
			if p.Clients[i].Kind != Malformed && c.Bool(3) {
				p.Clients[i].Requests[k].Raises = Raise(1 + c.Int(3))
			}
		}
	}
}

// raise panics if the plan says so of the request and the hook.
func (g *gateway) raise(r *http.Request, at Raise) {
	token, _ := tokenOf(r.URL.Path)
	if e := g.journal.exchanges[token]; e == nil || e.Raises != at {
		return
	}
	g.journal.mu.Lock()
	if p := passageOf(r.Context()); p != nil {
		p.Raised = true
	}
	g.journal.mu.Unlock()
	g.journal.manners.Add("gateway: "+at.String()+" panics with a value of its own", 1)
	panic(errPlanned)
}

// raising adds ModifyResponse to the proxy's hooks, before the existing one.
func (g *gateway) raising(o *proxy.Options) {
	next := o.ModifyResponse
	for _, e := range g.journal.exchanges {
		if e.Raises == RaiseModify {
			o.ModifyResponse = func(a *proxy.Response) {
				g.raise(a.In, RaiseModify)
				if next != nil {
					next(a)
				}
			}
		}
	}
}

// raiseInCheck panics in every so manieth call of Check.Healthy for the ith target, as the plan says.
func (g *gateway) raiseInCheck(i int) {
	if n := int64(g.plan.Upstream.CheckPanics); n > 0 && g.healthy[i].Add(1)%n == 0 {
		addr := g.plan.Targets[i].Addr
		g.journal.noteGroup(groupEvent{kind: groupRaised, addr: addr})
		g.journal.manners.Add("gateway: Check.Healthy panics", 1)
		panic(errPlanned)
	}
}

// raiseInChange panics in every other call of Check.OnChange, where checks panic.
func (g *gateway) raiseInChange() {
	if g.plan.Upstream.CheckPanics > 0 && g.changes.Add(1)%2 == 0 {
		g.journal.manners.Add("gateway: Check.OnChange panics", 1)
		panic(errPlanned)
	}
}

// planned reports whether a line of the server's log is about a panic of the plan.
func planned(text string) bool { return strings.Contains(text, errPlanned.Error()) }

// raised reports whether a hook has panicked for the exchange with a value of its own.
func (r *ruler) raised() bool {
	for _, p := range r.w.journal.passages {
		if p.Token == r.e.Token && p.Raised {
			return true
		}
	}
	return false
}

// brokenByPanic: after a panic in a hook the client sees no response that looks whole, except that of a filter that recovers
// from the panic or holds responses until their handlers have returned.
func (r *ruler) brokenByPanic() {
	if !r.raised() || r.o.Tunnel != nil {
		return
	}
	switch s := r.o.Status; {
	case r.o.Attempt >= 0 && r.e.Raises == RaiseError: // which may be called for the rest of a request that has had its response
	case r.o.Attempt >= 0:
		r.fail("panic", "a hook has panicked, and the client sees %d of attempt %d", s, r.o.Attempt)
	case s == 0 || s == http.StatusInternalServerError && r.w.plan.has(recoverKind.name):
	case !r.o.Whole || s == http.StatusBadGateway && len(r.w.plan.Gateway.Filters) > 0:
	default:
		r.fail("panic", "a hook has panicked, and the client sees %d", s)
	}
}
