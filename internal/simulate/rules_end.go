package simulate

import (
	"errors"
	"net/http"
	"time"
)

// probe: after the last fault and some time the gateway serves as a new one would.
func (w *world) probe() {
	w.settle(w.quiet(5*time.Minute), nil)
	w.gateway.change(ChangePlan{Kind: SetAll})
	for range 2 {
		status, err := w.probeOnce()
		due := func() bool {
			if w.plan.drains() {
				return status == http.StatusServiceUnavailable
			}
			return status == http.StatusOK || w.hasTargetFaults()
		}
		w.settle(0, func() bool { // what a busy machine has made fail counts for a moment
			if !due() {
				status, err = w.probeOnce()
			}
			return due()
		})
		if !due() {
			w.journal.Break("serves", "a probe sees %d, %v, of a group that was drained: %v", status, err, w.plan.drains())
		}
		if w.plan.drains() {
			continue
		}
		w.settle(time.Minute, nil)
	}
}

// probeOnce is a new client's request, and returns the status of the response.
func (w *world) probeOnce() (int, error) {
	c := &client{world: w, plan: &ClientPlan{Links: LinksPlan{Manners: Link{Window: 64 << 10, Delay: time.Millisecond}}}, name: "probe", addr: "198.51.100.99"}
	conn := c.dial()
	if conn == nil {
		return 0, errors.New("no connection")
	}
	defer conn.Close()
	return c.probe(conn)
}

// hasTargetFaults reports whether connections to targets may still have faults to come.
func (w *world) hasTargetFaults() bool {
	for _, t := range w.plan.Targets {
		if len(t.Links.There)+len(t.Links.Back)+len(t.Dials) > 0 {
			return true
		}
	}
	return false
}
