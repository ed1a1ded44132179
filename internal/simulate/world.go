package simulate

import (
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/internal/random"
)

// world is one history while it runs.
type world struct {
	plan      *Plan
	network   *Network
	sockets   *sockets      // nil: the gateway is in the network, too, and time is virtual
	longest   time.Duration // that a client waits
	journal   *Journal
	gateway   *gateway
	files     tempFiles
	targets   []*target
	exchanges map[uint32]*ExchangePlan
	ended     chan struct{} // closed when the clients have ended: silent parties give up
}

// longest is how long clients wait at most. Every timeout of a gateway is shorter.
const longest = 15 * time.Minute

// Run runs a plan in the caller's testing/synctest bubble and records the history in j.
func Run(plan *Plan, j *Journal) {
	j.start = time.Now()
	defer random.Seed(plan.Targets[0].Links.Seed)()
	w := newWorld(plan, j)
	w.run(w.network)
	w.check()
}

// newWorld returns the world of a plan, in which nothing happens yet.
func newWorld(plan *Plan, j *Journal) *world {
	w := &world{plan: plan, network: NewNetwork(&j.faults), journal: j, longest: longest, exchanges: map[uint32]*ExchangePlan{}, ended: make(chan struct{})}
	w.network.Links = w.links
	j.exchanges = w.exchanges
	return w
}

// run runs the history, with a gateway that has its connections from s.
func (w *world) run(s surroundings) {
	plan := w.plan
	for i := range plan.Clients {
		for k := range plan.Clients[i].Requests {
			e := &plan.Clients[i].Requests[k]
			w.exchanges[e.Token] = e
		}
	}
	for i := range plan.Targets {
		w.targets = append(w.targets, startTarget(w, i))
	}
	err := w.makeTempFiles()
	if err == nil {
		w.gateway, err = newGateway(plan, s, w.journal, w.files.dir)
	}
	if err != nil {
		w.journal.Break("configuration", "%v", err)
		w.stop()
		w.checkTempFiles()
		return
	}
	stopWatching, stopIllness := w.watchCounts(), w.fallIll()
	w.runClients()
	stopIllness()
	stopWatching()
	w.settle(0, nil)
	close(w.ended)
	w.quiesce()
	w.probe()
	w.gateway.close()
	w.stop()
	w.settle(0, w.over)
	w.checkTempFiles()
}

// settle lets d pass, and waits until all its consequences have happened. In real time it
// waits until done reports true instead, if done is not nil; the rules find events that did
// not happen.
func (w *world) settle(d time.Duration, done func() bool) {
	if w.sockets == nil {
		time.Sleep(d)
		synctest.Wait()
	} else if done != nil {
		poll(done)
	}
}

// stop ends the targets.
func (w *world) stop() {
	if w.sockets != nil {
		w.sockets.stop()
	}
	for _, t := range w.targets {
		t.close()
	}
	w.settle(time.Minute, nil) // for goroutines that end after an interval
}

// runClients runs all clients, and the changes of the gateway, to their end.
func (w *world) runClients() {
	var wg sync.WaitGroup
	for i := range w.plan.Clients {
		wg.Go(func() { w.runClient(i) })
	}
	done := make(chan struct{})
	for i, c := range w.plan.Changes {
		wg.Go(func() {
			w.sleep(c.At + time.Duration(i)*time.Microsecond)
			w.gateway.change(c)
		})
	}
	go func() { wg.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(8 * w.longest):
		w.journal.Break("held", "clients still wait after %v; goroutines:\n%s", 8*w.longest, w.stacks())
		w.network.resetAll()
		<-done
	}
}

// stacks returns the goroutines of the world, and in real time those of all.
func (w *world) stacks() string {
	if w.sockets != nil {
		return everything()
	}
	return others()
}

// quiesce waits until every timeout of the gateway has passed, and checks that nothing is left.
func (w *world) quiesce() {
	w.settle(w.quiet(10*time.Minute), w.idle)
	if n := w.gateway.population().InFlight(); n != 0 {
		w.journal.Break("counts", "%d requests are in flight when all have ended", n)
	}
	if n := w.gateway.population().Waiting(); n != 0 {
		w.journal.Break("counts", "%d requests wait when all have ended", n)
	}
	for s := range w.gateway.population().Targets() {
		if s.InFlight != 0 {
			w.journal.Break("counts", "%s has %d requests when all have ended", s.Target.Addr, s.InFlight)
		}
	}
}

// quiet limits d, a wait in which only checks happen: else they would be most of a history.
func (w *world) quiet(d time.Duration) time.Duration {
	if w.plan.Gateway.Check {
		return min(d, 2*time.Minute) // twice the longest bound of newGatewayPlan
	}
	return d
}

// over reports whether nothing of the gateway writes any longer what the rules read: net/http's server does not wait for the
// handlers of connections that were hijacked or have ended.
func (w *world) over() bool { return w.gateway.serving.Load() == 0 && w.files.gone() }

// idle reports whether the group has no requests.
func (w *world) idle() bool {
	for s := range w.gateway.population().Targets() {
		if s.InFlight != 0 {
			return false
		}
	}
	return w.gateway.population().InFlight() == 0 && w.gateway.population().Waiting() == 0
}

// endless is the window of a direction whose writer holds a mutex while it writes, as
// net/http's HTTP/2 client does: such a writer must not wait, since time does not pass in a
// bubble while a goroutine waits for a mutex (testing/synctest).
const endless = 1 << 30

// links gives the gateway's connections to targets their manners.
func (w *world) links(to string, n int) (Dialling, Link, Link) {
	if to == gatewayAddr {
		panic("clients dial with their own links")
	}
	for i := range w.plan.Targets {
		t := &w.plan.Targets[i]
		if t.Addr != to {
			continue
		}
		if w.ill(i, IllDown) {
			return Dialling{Refuse: true}, Link{}, Link{}
		}
		var d Dialling
		if n < len(t.Dials) {
			d = t.Dials[n]
		}
		there, back := t.Links.link(n)
		if w.healed() && w.sockets == nil {
			d, there.Fault, back.Fault = Dialling{}, Fault{}, Fault{}
		}
		if w.plan.Gateway.H2Targets && w.sockets == nil {
			there.Window = endless
			if t.ByFrames {
				back.Window = endless
			}
		}
		return d, there, back
	}
	return Dialling{Refuse: true}, Link{}, Link{}
}

// healed reports whether the time of faults is over.
func (w *world) healed() bool {
	select {
	case <-w.ended:
		return true
	default:
		return false
	}
}

// sleep sleeps; a silent or slow party is woken when the clients have ended.
func (w *world) sleep(d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d + offGrid)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.ended:
	}
}

// offGrid is added to each pause of a party, so that it wakes up when nothing arrives and no timeout of the gateway, which
// are round, ends.
const offGrid = instant/2 + 3*time.Nanosecond

// host returns the IP address of an address.
func host(addr string) string {
	h, _, _ := strings.Cut(addr, ":")
	return h
}
