package simulate

import (
	"reflect"
	"time"

	"github.com/culvert-go/culvert/server"
)

// realPace is the divisor of planned times in real time: a second becomes 25 ms.
const realPace = 40

// RunReal runs a plan in real time, with a gateway that has real sockets, and records the
// history in j. Runs of the same plan differ.
func RunReal(plan *Plan, j *Journal) {
	j.start = time.Now()
	plan = plan.forSockets()
	w := newWorld(plan.atPace(realPace), j)
	w.longest = 3 * time.Second // every bound of a gateway is shorter at that pace
	var err error
	if w.sockets, err = newSockets(w.plan, w.network, j); err != nil {
		j.Break("configuration", "%v", err)
		return
	}
	w.sockets.start()
	w.run(w.sockets)
	judged := *w
	judged.plan = plan // as it was: the rules compare times of it, and a dial may still read the other
	judged.check()
}

// parkSoon has a server park its idle connections within milliseconds, as it does after a quarter of a second: in real time
// few connections are idle for so long.
func parkSoon(s *server.Server) {
	after := reflect.ValueOf(s).Elem().FieldByName("parkAfter")
	*(*time.Duration)(after.Addr().UnsafePointer()) = time.Millisecond
}

// dice returns a number for decisions that only real sockets need: choices for them would
// change the plans of all seeds.
func (p *Plan) dice() uint64 { return p.Targets[0].Links.Seed }

// moves reports whether the kernel may move the bodies of responses to the client
// (splice(2)). They are not buffered then, and written by net/http's own writer.
func (p *Plan) moves() bool { return p.dice()/6%2 == 0 }

// forSockets returns a copy of p in which bodies of responses are long where the kernel
// may move them: it does so with long ones alone.
func (p *Plan) forSockets() *Plan {
	p = p.atPace(1)
	for i := range p.Clients {
		p.Clients[i].TLS = false
	}
	// Each check is a connection: many at once are all that a machine does. Few are good Rise times in a row while the
	// gateway is waited for.
	p.Gateway.CheckEvery = max(p.Gateway.CheckEvery, 10*time.Second)
	// The time that a busy machine takes for a dial or a header must not count as a target's failure.
	p.Gateway.DialTimeout = max(p.Gateway.DialTimeout, 20*time.Second)
	if p.Gateway.HeaderTimeout > 0 {
		p.Gateway.HeaderTimeout = max(p.Gateway.HeaderTimeout, 20*time.Second)
	}
	if !p.moves() {
		return p
	}
	p.Gateway.ResponseBuffer, p.Gateway.FlushInterval = 0, 0
	for i := range p.Clients {
		for k := range p.Clients[i].Requests {
			list := p.Clients[i].Requests[k].Responses
			for n := range list {
				if r := &list[n]; r.Framing == ByLength && r.Media == MediaOpaque && r.Coding == "" && r.Body.Length > 10 {
					r.Body.Length += 64 << 10
				}
			}
		}
	}
	return p
}

// slow reports whether the exchange has taken so long, in real time, that a timeout of the
// gateway may have ended it, though the plan is far from it.
func (r *ruler) slow() bool {
	if r.w.sockets == nil {
		return false
	}
	took := r.o.Ended.Sub(r.o.Sent)
	return took >= shortest(&r.w.plan.Gateway)/realPace || r.o.Ended.Sub(r.w.journal.start) >= 30*time.Second/realPace
}

// shortest returns the shortest bound that an exchange has in the gateway.
func shortest(g *GatewayPlan) time.Duration {
	least := 20 * time.Second
	for _, f := range g.Filters {
		if filterKinds[f.Kind].name == timeoutName {
			least = min(least, f.timeout())
		}
	}
	v := reflect.ValueOf(*g)
	for i := range v.NumField() {
		switch v.Type().Field(i).Name {
		case "FlushInterval", "FailTimeout", "IdleTimeout":
			continue
		}
		if d, ok := v.Field(i).Interface().(time.Duration); ok && d > 0 {
			least = min(least, d)
		}
	}
	return least
}
