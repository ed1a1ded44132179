package simulate

import (
	"testing"
	"time"
)

// A client that still reads the response before holds the next one of its connection up, and what it then reads itself does not.
func TestHeldByTheResponseBefore(t *testing.T) {
	for _, test := range []struct {
		name   string
		client ClientPlan
		held   bool
	}{
		{"one after the other", ClientPlan{Kind: HTTP1}, false},
		{"pipelined", ClientPlan{Kind: HTTP1, Pipelined: true}, true},
		{"over HTTP/2", ClientPlan{Kind: HTTP2}, true},
	} {
		test.client.Requests = []ExchangePlan{{Token: 1, ReadPause: time.Second}, {Token: 2}}
		plan := &Plan{Clients: []ClientPlan{test.client}}
		times := times{w: &world{plan: plan}, g: &plan.Gateway, p: &Passage{Token: 2}, e: &plan.Clients[0].Requests[1]}
		if held := times.heldByWrites() > 0; held != test.held {
			t.Errorf("%s: held %v, want %v", test.name, held, test.held)
		}
	}
}
