package simulate

import (
	"slices"
	"time"

	"github.com/culvert-go/culvert/upstream"
)

// addPlaces chooses histories whose targets have a MaxConns of their own (upstream.Target.MaxConns), and calls of
// Group.Set that change it, perhaps to fewer than the target has requests.
func (p *Plan) addPlaces(c *Choices) {
	if !c.Bool(6) {
		return
	}
	for i := range p.Upstream.Targets {
		p.Upstream.Targets[i].Places = Pick(c, 0, 1, 2, 3, noBound)
	}
	for range c.Int(4) {
		p.Changes = append(p.Changes, ChangePlan{At: someTime(c) * Pick(c, time.Duration(1), 5), Kind: SetPlaces, Arg: c.Int(3), Places: Pick(c, 1, 2, 3, noBound)})
	}
	if c.Bool(2) {
		p.Gateway.Queue = 10
	}
	if c.Bool(2) {
		p.crowd(c)
	}
}

// noBound is the number of places of a target without MaxConns.
const noBound = -1

// maxConns returns the MaxConns for a number of places; 0 is the number for all targets.
func (g *GatewayPlan) maxConns(places int) int {
	switch places {
	case 0:
		return g.MaxConns
	case noBound:
		return 0
	}
	return places
}

// placed gives one of the list the places that a change says, if it is one of those.
func (g *gateway) placed(list []upstream.Target, c ChangePlan) []upstream.Target {
	if c.Kind == SetPlaces {
		g.journal.manners.Add("gateway: Group.Set changes MaxConns", 1)
		list[c.Arg%len(list)].MaxConns = g.plan.Gateway.maxConns(c.Places)
	}
	return list
}

// bounded reports whether some target has a MaxConns.
func (p *Plan) bounded() bool {
	for i := range p.Targets {
		if p.target(i).MaxConns > 0 {
			return true
		}
	}
	return p.setsPlaces()
}

// setsPlaces reports whether Group.Set gives a target other places.
func (p *Plan) setsPlaces() bool {
	return slices.ContainsFunc(p.Changes, func(c ChangePlan) bool { return c.Kind == SetPlaces })
}

// most returns the largest MaxConns of a target at this instant, before and after Set; 0 means no bound.
func (b *batch) most(addr string) int {
	most := 0
	for _, targets := range [][]upstream.Target{b.targets, b.m.targets} {
		if i := indexOf(targets, addr); i >= 0 {
			if targets[i].MaxConns == 0 {
				return 0
			}
			most = max(most, targets[i].MaxConns)
		}
	}
	return most
}

// began reports whether a target got a request at this instant. Requests that it already has keep their places if Set
// reduces MaxConns.
func (b *batch) began(addr string) bool {
	return slices.ContainsFunc(b.begins, func(l *lease) bool { return l.target == addr })
}
