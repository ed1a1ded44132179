package simulate

import (
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/upstream"
)

// FloorsPlan is the configuration of the group by which failures take targets out: what counts, how many of them, and for how
// long.
type FloorsPlan struct {
	MaxEjected      float64
	PanicThreshold  float64
	FailRate        float64
	FailMinRequests int
	FailWindow      time.Duration
	FailKinds       []culvert.ErrorKind
	MaxFailTimeout  time.Duration
}

// addFloors chooses histories with other rules than nginx's. In all others failures may take out all targets, so that the health of
// each is its own.
func (p *Plan) addFloors(c *Choices) {
	f := &p.Upstream.Floors
	f.MaxEjected = 1
	if !c.Bool(4) {
		return
	}
	f.MaxEjected = Pick(c, 0, 1, 0.34, 0.5, 0.67)
	f.PanicThreshold = Pick(c, 0, 0, 0.5, 1, 0.34)
	f.MaxFailTimeout = seconds(Pick(c, 0, 20, 3))
	if c.Bool(3) {
		f.FailRate, f.FailMinRequests = Pick(c, 0.5, 1, 0.3), Pick(c, 1, 3, 2, 0)
		f.FailWindow = seconds(Pick(c, 0, 1, 3))
	}
	switch c.Int(6) {
	case 1:
		f.FailKinds = []culvert.ErrorKind{culvert.DialFailed}
	case 2:
		f.FailKinds = []culvert.ErrorKind{culvert.Timeout, culvert.HeaderInvalid, culvert.BodyBroken}
	}
	p.Gateway.MaxFails, p.Gateway.FailTimeout = Pick(c, 0, 0, 1, 3), seconds(Pick(c, 1, 1, 10))
	p.failOften(c)
}

// failOften makes it likely that several targets of three fail at a time, by dials, statuses and connections that end.
func (p *Plan) failOften(c *Choices) {
	for len(p.Targets) < 3 && !c.Bool(3) {
		p.Targets = append(p.Targets, newTargetPlan(c, len(p.Targets)))
		p.Upstream.Targets = append(p.Upstream.Targets, UpstreamTarget{})
	}
	for i := range p.Upstream.Targets {
		for range c.Int(3) {
			from := someTime(c)
			p.Upstream.Targets[i].Ill = append(p.Upstream.Targets[i].Ill, Illness{from, from + time.Duration(1+c.Int(200))*50*time.Millisecond, IllDown})
		}
	}
	p.Gateway.FailStatus = p.Gateway.FailStatus || c.Bool(2)
	for range c.Int(3) {
		p.crowd(c)
		client := &p.Clients[len(p.Clients)-1]
		for k := range client.Requests {
			e := &client.Requests[k]
			e.Wait = time.Duration(c.Int(30)) * 50 * time.Millisecond
			if e.Responses[0].Status = Pick(c, 200, 503, 200); c.Bool(6) {
				e.Responses[0].Garbage = true
			}
		}
	}
}

// options adds the plan's options to the group's.
func (f *FloorsPlan) options(o *upstream.Options) {
	o.MaxEjected, o.PanicThreshold, o.MaxFailTimeout = f.MaxEjected, f.PanicThreshold, f.MaxFailTimeout
	o.FailRate, o.FailMinRequests, o.FailWindow, o.FailKinds = f.FailRate, f.FailMinRequests, f.FailWindow, f.FailKinds
}

// joint reports whether the health of a target depends on that of the others.
func (f *FloorsPlan) joint() bool { return f.MaxEjected != 1 || f.PanicThreshold > 0 }

// counts reports whether errors of a kind count as failures.
func (f *FloorsPlan) counts(kind culvert.ErrorKind) bool {
	for _, k := range f.FailKinds {
		if k == kind {
			return true
		}
	}
	return f.FailKinds == nil
}

// mostEjected returns how many of n targets failures may take out at a time, unless that leaves none.
func (f *FloorsPlan) mostEjected(n int) int {
	if f.MaxEjected == 0 {
		return n
	}
	return max(1, int(f.MaxEjected*float64(n)+1e-9))
}

// checkFloors: failures take out no more targets than they may, and not the last one that is available. The caller holds the
// journal's mutex.
func (w *world) checkFloors() {
	f := &w.plan.Upstream.Floors
	if f.MaxEjected == 1 {
		return
	}
	for _, s := range w.journal.samples {
		all, ejected, left, only := 0, 0, 0, 0
		for _, t := range s.targets {
			switch {
			case t.Target.Down || t.Drained:
				continue
			case t.Ejected && !t.Unhealthy:
				only++
			case !t.Ejected && !t.Unhealthy:
				left++
			}
			if all++; t.Ejected {
				ejected++
			}
		}
		if only > 0 && (left == 0 || ejected > f.mostEjected(all)) {
			w.journal.breakAt(s.at, "floor", "failures have taken out %d of %d targets, %d are available, MaxEjected is %v", ejected, all, left, f.MaxEjected)
			return
		}
		if ejected > 0 {
			w.journal.manners.Add("gateway: targets are out, and others are kept", 1)
		}
	}
}
