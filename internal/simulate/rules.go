package simulate

import (
	"fmt"
	"time"
)

// check checks the journal when the history has ended.
func (w *world) check() {
	j := w.journal
	j.mu.Lock()
	defer j.mu.Unlock()
	for i := range w.plan.Clients {
		c := &w.plan.Clients[i]
		for k := range c.Requests {
			e := &c.Requests[k]
			r := ruler{w: w, e: e, client: c, o: j.outcomes[e.Token], sights: j.sights[e.Token]}
			if r.o == nil {
				continue // its connection ended before
			}
			r.check()
			for _, b := range r.broken {
				j.broken = append(j.broken, b)
				j.lines = append(j.lines, line{time.Since(j.start), "RULE", b.String()})
			}
		}
	}
	w.checkObserved()
	if w.sockets == nil { // they know moments
		if w.plan.Gateway.RetryWait == 0 && w.plan.Gateway.Hedge == 0 && !w.plan.Gateway.Dynamic && !w.plan.Gateway.Affine { // otherwise a request picks at moments that are not observed, or another target
			w.checkModel()
		}
		w.checkWaiting()
		w.checkTimes()
		w.checkFloors()
		w.checkDynamic()
	}
	for _, c := range w.network.Unclosed() {
		if host(c.local.String()) == host(gatewayAddr) || host(c.local.String()) == "192.0.2.2" {
			j.broken = append(j.broken, Broken{"left", fmt.Sprintf("the gateway has not closed %v to %v", c.local, c.remote)})
		}
	}
}

// ruler checks one exchange.
type ruler struct {
	w      *world
	e      *ExchangePlan
	client *ClientPlan
	o      *Outcome
	sights []*Sight
	broken []Broken
}

// fail records a broken rule.
func (r *ruler) fail(rule, format string, args ...any) {
	r.broken = append(r.broken, Broken{rule, fmt.Sprintf("#%d: ", r.e.Token) + fmt.Sprintf(format, args...)})
}

// check checks all rules of one exchange.
func (r *ruler) check() {
	if r.e.Page != PageNone {
		r.page()
		return
	}
	r.belongs()
	r.complete()
	r.request()
	r.attempts()
	r.fields()
	r.spelt()
	r.leaves()
	r.tunnel()
	r.malformed()
	r.oddly()
	r.continued()
	r.served()
	r.silent()
	r.passage()
	r.early()
	r.told()
	r.forbidden()
	r.hooks()
	r.observed()
	r.closes()
	r.expired()
	r.countWaits()
	r.interims()
	r.brokenByPanic()
	r.introducedAs()
	r.named()
}
