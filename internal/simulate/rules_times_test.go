package simulate

import (
	"testing"
	"time"
)

// A client that still reads a response delays the next one of its connection. A response that it reads afterwards does not.
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

// If a client leaves while a target opens its window in small steps, that is noticed after all bytes that it has sent were read.
func TestLeftWhileAWindowOpens(t *testing.T) {
	const s = time.Second
	for _, test := range []struct {
		name   string
		frames FramesPlan
		ended  time.Duration
		broken int
	}{
		{"at once", FramesPlan{Step: 1000}, 14 * s, 0},
		{"at once, too late", FramesPlan{Step: 1000}, 16 * s, 1},
		{"late", FramesPlan{Step: 1000, Late: 2 * s}, 34 * s, 0},
		{"late, too late", FramesPlan{Step: 1000, Late: 2 * s}, 36 * s, 1},
	} {
		plan := &Plan{
			Gateway: GatewayPlan{DialTimeout: s, TargetWrite: s},
			Targets: []TargetPlan{{ByFrames: true, Frames: test.frames}},
			Clients: []ClientPlan{{Kind: HTTP1, Requests: []ExchangePlan{{Token: 1, Body: BodyPlan{Length: 9_500}}}}},
		}
		j := inBubble(t, mostSeconds, func(j *Journal) {
			j.start = time.Now()
			o := j.outcome(1)
			o.LeftAlone, o.Ended = true, time.Now()
			times := times{w: &world{plan: plan, journal: j}, g: &plan.Gateway, p: &Passage{Token: 1, Body: true, Returned: test.ended}, e: &plan.Clients[0].Requests[0]}
			times.left()
		})
		if len(j.broken) != test.broken {
			t.Errorf("%s: %v", test.name, j.broken)
		}
	}
}
