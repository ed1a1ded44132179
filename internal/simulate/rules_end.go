package simulate

import (
	"net/http"
	"testing/synctest"
	"time"
)

// probe: after the last fault and some time the gateway serves as a new one would.
func (w *world) probe() {
	time.Sleep(w.quiet(5 * time.Minute))
	synctest.Wait()
	w.gateway.change(ChangePlan{Kind: SetAll})
	for range 2 {
		c := &client{world: w, plan: &ClientPlan{Links: LinksPlan{Manners: Link{Window: 64 << 10, Delay: time.Millisecond}}}, name: "probe", addr: "198.51.100.99"}
		conn, err := c.dial()
		if err != nil {
			w.journal.Break("serves", "the gateway can't be dialled: %v", err)
			return
		}
		status, err := c.probe(conn)
		conn.Close()
		if want := http.StatusServiceUnavailable; w.plan.drains() {
			if status != want {
				w.journal.Break("serves", "a probe sees %d of a group that was drained", status)
			}
			continue
		}
		if status != http.StatusOK && !w.hasTargetFaults() {
			w.journal.Break("serves", "a probe sees %d, %v", status, err)
		}
		time.Sleep(time.Minute)
	}
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
