package simulate

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/culvert-go/culvert/upstream"
)

// UpstreamPlan is the part of the group's configuration that the model follows, and the changes of the group.
type UpstreamPlan struct {
	QueueTimeout time.Duration // 0: 10 seconds
	FailLatency  time.Duration
	SlowStart    time.Duration
	Fall, Rise   int  // 0: 3 and 2
	CheckExact   bool // checks come at exact intervals
	Targets      []UpstreamTarget
	Floors       FloorsPlan
	CheckPanics  int // n: every nth call of Check.Healthy panics; 0: none does
}

// UpstreamTarget is the part of a target's configuration that the model follows.
type UpstreamTarget struct {
	Weight       int
	Backup, Down bool
	Leaves       bool // Draining
	Ill          []Illness
	Places       int // MaxConns; 0: that of the gateway's plan, noBound: none
}

// Illness is a period in which a target fails.
type Illness struct {
	From, To time.Duration
	How      IllnessKind
}

// IllnessKind says how a target fails.
type IllnessKind int

const (
	// IllStatus: checks get a bad status.
	IllStatus IllnessKind = iota
	// IllSilent: checks get no response.
	IllSilent
	// IllDown: dials are refused, and connections were reset when it began.
	IllDown
)

// chooseUpstream chooses the configuration of the group's model.
func (p *Plan) chooseUpstream(c *Choices) {
	u := &p.Upstream
	u.QueueTimeout = seconds(Pick(c, 0, 1))
	u.FailLatency = seconds(Pick(c, 0, 0, 1))
	u.SlowStart = seconds(Pick(c, 0, 0, 5))
	u.Fall, u.Rise, u.CheckExact = Pick(c, 0, 1, 2), Pick(c, 0, 1, 3), c.Bool(2)
	ill := c.Bool(2)
	hashed := p.Gateway.Balance == 4 || p.Gateway.Balance == 5
	for i := range p.Targets {
		t := UpstreamTarget{Weight: Pick(c, 0, 1, 3), Backup: c.Bool(5) && i > 0 && !hashed, Down: c.Bool(12) && i > 0}
		for range c.Int(3) {
			from := someTime(c) * Pick(c, time.Duration(1), 10)
			if n := (Illness{from, from + time.Duration(1+c.Int(400))*100*time.Millisecond, IllnessKind(c.Int(3))}); ill {
				t.Ill = append(t.Ill, n)
			}
		}
		u.Targets = append(u.Targets, t)
	}
	for range c.Int(4) {
		p.Changes = append(p.Changes, ChangePlan{At: someTime(c) * Pick(c, time.Duration(1), 10), Kind: ChangeKind(c.Int(2)), Arg: c.Int(3)})
	}
	if c.Bool(12) {
		p.Changes = append(p.Changes, ChangePlan{At: someTime(c) * Pick(c, time.Duration(1), 5), Kind: DrainGroup})
	}
}

// drains reports whether the group is drained during the history.
func (p *Plan) drains() bool {
	return slices.ContainsFunc(p.Changes, func(c ChangePlan) bool { return c.Kind == DrainGroup })
}

// queueTimeout returns the documented QueueTimeout.
func (u *UpstreamPlan) queueTimeout() time.Duration { return or(u.QueueTimeout, 10*time.Second) }

func (u *UpstreamPlan) fall() int { return or(u.Fall, 3) }
func (u *UpstreamPlan) rise() int { return or(u.Rise, 2) }

// or returns v, or the default if v is 0.
func or[T comparable](v, standard T) T {
	var zero T
	if v == zero {
		return standard
	}
	return v
}

// checkTimeout is the Check.Timeout of all plans.
const checkTimeout = time.Second

// checkJitter is the most by which the time to a check differs.
func (p *Plan) checkJitter() time.Duration {
	if p.Upstream.CheckExact {
		return 0
	}
	return p.Gateway.CheckEvery / 10
}

// checkBounds returns the least and the most time between the ends of two checks.
func (p *Plan) checkBounds() (least, most time.Duration) {
	return p.Gateway.CheckEvery - p.checkJitter(), p.Gateway.CheckEvery + p.checkJitter() + checkTimeout
}

// recovery returns how long checks take to bring a target back.
func (p *Plan) recovery() time.Duration {
	if !p.Gateway.Check {
		return 0
	}
	_, most := p.checkBounds()
	checks := time.Duration(p.Upstream.rise() + 1)
	if p.Upstream.CheckPanics > 0 { // at least every other check counts
		checks *= 2
	}
	return p.deadConnection() + checks*most
}

// deadConnection returns how long checks may use a connection that a link has silenced: they share one of HTTP/2, which is
// used until a PING gets no response (upstream.Options.PingInterval).
func (p *Plan) deadConnection() time.Duration {
	silences := func(f Fault) bool { return f.Kind == FaultSilence || f.Kind == FaultPause }
	if p.Gateway.H2Targets && slices.ContainsFunc(p.Targets, func(t TargetPlan) bool {
		return slices.ContainsFunc(t.Links.There, silences) || slices.ContainsFunc(t.Links.Back, silences)
	}) {
		return 2 * pingInterval
	}
	return 0
}

// options adds the plan's options to the group's.
func (u *UpstreamPlan) options(g *gateway, o *upstream.Options) {
	o.QueueTimeout, o.FailLatency, o.SlowStart = u.QueueTimeout, g.plan.Gateway.noneIs(u.FailLatency), u.SlowStart
	u.Floors.options(o)
	if o.Check == nil {
		return
	}
	o.Check.Timeout, o.Check.Fall, o.Check.Rise = checkTimeout, u.Fall, u.Rise
	if u.CheckExact {
		o.Check.Jitter = -1
	}
	o.Check.Header = http.Header{checkField: {"1"}}
	o.Check.Healthy = g.checked
	o.Check.OnChange = func(addr string, healthy bool, err error) {
		g.journal.Note("gateway", "checks: %s healthy %v: %v", addr, healthy, err)
		g.journal.noteGroup(groupEvent{kind: groupChanged, addr: addr, good: healthy})
		g.raiseInChange()
	}
}

// checkField is a field of checks.
const checkField = "X-Check"

// checkPath is upstream.Check.Path.
const checkPath = "/0"

// The statuses of the first target's responses to checks. Those of each next target are greater by one.
const (
	checkGood = 210
	checkBad  = 510
)

// checked is the group's Check.Healthy. The status identifies the target.
func (g *gateway) checked(status int) bool {
	good, n := true, status-checkGood
	if status >= checkBad {
		good, n = false, status-checkBad
	}
	if n < 0 || n >= len(g.plan.Targets) {
		return false
	}
	g.raiseInCheck(n)
	g.journal.noteGroup(groupEvent{kind: groupChecked, addr: g.plan.Targets[n].Addr, good: good})
	return good
}

// target returns the ith target for the group.
func (p *Plan) target(i int) upstream.Target {
	g, u := &p.Gateway, &p.Upstream.Targets[i]
	return p.Targets[i].based(upstream.Target{Addr: p.Targets[i].Addr, MaxConns: g.maxConns(u.Places), MaxFails: g.MaxFails, FailTimeout: g.FailTimeout,
		Weight: u.Weight, Backup: u.Backup, Down: u.Down, Draining: u.Leaves})
}

// targets returns the plan's targets except one. The first is never a backup, since the group would refuse that.
func (g *gateway) targets(without int) (list []upstream.Target) {
	for i := range g.plan.Targets {
		if i != without || len(g.plan.Targets) == 1 {
			list = append(list, g.plan.target(i))
		}
	}
	if !slices.ContainsFunc(list, func(t upstream.Target) bool { return !t.Backup }) {
		list[0].Backup = false
	}
	return list
}

// set replaces the group's targets.
func (g *gateway) set(without int, change ChangePlan) {
	g.setting.Lock() // else the order of two calls at one instant would not be known
	defer g.setting.Unlock()
	list := g.placed(g.targets(without), change)
	if err := g.group.Set(list...); err != nil {
		g.journal.Break("set", "%v", err)
		return
	}
	g.journal.noteGroup(groupEvent{kind: groupSet, targets: list})
}

// drainGroup refuses further requests, and waits for the end of those in flight.
func (g *gateway) drainGroup() {
	g.journal.noteGroup(groupEvent{kind: groupDrain})
	ctx, cancel := context.WithTimeout(context.Background(), 8*longest)
	defer cancel()
	if err := g.population().Drain(ctx); err != nil {
		g.journal.Break("drain", "the group's requests do not end: %v", err)
		return
	}
	g.journal.noteGroup(groupEvent{kind: groupDrained})
}

// ill reports whether the ith target now fails in a way. No target fails after the clients have ended.
func (w *world) ill(i int, how IllnessKind) bool {
	if w.healed() {
		return false
	}
	now := w.journal.now()
	return slices.ContainsFunc(w.plan.Upstream.Targets[i].Ill, func(n Illness) bool { return n.How == how && n.From <= now && now < n.To })
}

// resets reports whether connections to targets may be reset by an illness.
func (u *UpstreamPlan) resets() bool {
	return slices.ContainsFunc(u.Targets, func(t UpstreamTarget) bool {
		return slices.ContainsFunc(t.Ill, func(n Illness) bool { return n.How == IllDown })
	})
}

// fallIll resets the connections of targets whose dials are refused from then on.
func (w *world) fallIll() (stop func()) {
	var timers []*time.Timer
	for i, t := range w.plan.Upstream.Targets {
		for _, n := range t.Ill {
			if n.How != IllDown {
				continue
			}
			timers = append(timers, time.AfterFunc(n.From, func() {
				for _, c := range w.network.endsAt(w.plan.Targets[i].Addr) {
					c.Reset()
				}
			}))
		}
	}
	return func() {
		for _, t := range timers {
			t.Stop()
		}
	}
}
