package simulate

import (
	"net/http"
	"testing"
	"time"
)

// A target that gets a request twice within one attempt, since it resets a kept connection, is late if its second response
// is, also if the next attempt reaches no target, so that there are as many requests at the targets as attempts.
func TestLateBehindAKeptConnection(t *testing.T) {
	plan := simplest()
	plan.Gateway.RetryStatus, plan.Gateway.MaxFails, plan.Upstream.FailLatency = true, 3, time.Second
	unreached := newTargetPlan(Repeat(nil), 1)
	unreached.Dials = []Dialling{{Refuse: true}}
	plan.Targets = append(plan.Targets, unreached)
	plan.Upstream.Targets = []UpstreamTarget{{}, {Backup: true}}
	late := plan.Clients[0].Requests[0]
	late.Token = 2
	late.Responses = []ResponsePlan{{Status: 200, Stale: StaleReset}, {Status: 503, Delay: time.Second}}
	last := plan.Clients[0].Requests[0]
	last.Token = 3
	last.Wait = 3 * time.Second // the group's state is looked at meanwhile
	plan.Clients[0].Requests = append(plan.Clients[0].Requests, late, last)
	j := unbroken(t, plan)
	if n, status := len(j.sights[late.Token]), j.outcomes[late.Token].Status; n != 2 || status != http.StatusBadGateway {
		t.Errorf("targets saw the request %d times, want 2; the client saw %d, want 502", n, status)
	}
}
