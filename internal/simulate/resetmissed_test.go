package simulate

import (
	"slices"
	"testing"
	"time"
)

// A gateway that has closed a connection of HTTP/2 for what another stream brought has not seen the RST_STREAM that was on its
// way meanwhile, and may send the request again.
func TestResetBehindTheEndOfTheConnection(t *testing.T) {
	missed := false
	for delay := time.Duration(0); delay < 20*time.Millisecond && !missed && !t.Failed(); delay += time.Millisecond / 2 { // somewhere there
		plan := simplest()
		g := &plan.Gateway
		g.H2Targets, g.Transport, g.RetryErrors = true, true, true
		target := &plan.Targets[0]
		target.ByFrames, target.Frames = true, FramesPlan{Window: 65535, Step: 65535, Table: 4096}
		target.Links.Manners.Delay = 5 * time.Millisecond
		second := plan.Clients[0]
		second.Requests = []ExchangePlan{second.Requests[0]}
		broken, reset := &plan.Clients[0].Requests[0], &second.Requests[0]
		broken.Responses[0].OddFrames = 1 + slices.IndexFunc(frameOddities, func(o frameOddity) bool { return o.name == "a header list that is too large" })
		reset.Token, reset.Wait = 2, time.Millisecond
		reset.Responses = []ResponsePlan{{Status: 200, Garbage: true, Delay: delay}, {Status: 200}}
		plan.Clients = append(plan.Clients, second)
		for _, s := range unbroken(t, plan).sights[2] {
			missed = missed || s.Reset && s.reset.missed()
		}
	}
	if !missed {
		t.Error("no RST_STREAM was on its way when the connection ended")
	}
}
