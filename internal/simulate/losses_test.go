package simulate

import (
	"slices"
	"testing"
	"time"
)

// simplest returns a plan of one client, one request and one target, without faults.
func simplest() *Plan { return NewPlan(Repeat([]uint32{0})) }

// unbroken runs a plan, and fails the test if it breaks a rule.
func unbroken(t *testing.T, plan *Plan) *Journal {
	t.Helper()
	j := runPlan(t, plan)
	for _, b := range j.broken {
		t.Error(b)
	}
	if t.Failed() {
		t.Log(j.Timeline())
	}
	return j
}

// A target that resets a tunnel at once discards the 101 that the gateway has not read yet: a failure, and a 502.
func TestResetBehindTheSwitch(t *testing.T) {
	plan := simplest()
	plan.Clients[0].Kind = WebSocket
	again := plan.Clients[0].Requests[0] // checks the group after the failure
	again.Token++
	reset := &plan.Clients[0].Requests[0].Tunnel.Down
	reset.Length, reset.Cut, reset.How = 3, true, FaultReset
	again.Tunnel.Up = BodyPlan{Length: 1, Pause: 10 * time.Millisecond}
	plan.Clients[0].Requests = append(plan.Clients[0].Requests, again)
	if o := unbroken(t, plan).outcomes[1]; o.Status != 502 {
		t.Errorf("the client saw %d, want the 502 of a lost 101", o.Status)
	}
}

// A target that has fallen silent within its response ends when the clients have ended: by a reset, which discards a header
// that is on its way. The gateway may then send the request again.
func TestResetBehindTheHeader(t *testing.T) {
	plan := simplest()
	plan.Clients[0].Links.Manners.Delay = time.Second // the gateway does not see its client go before it has sent the request again
	plan.Targets[0].Links.Manners.Delay = 100 * time.Millisecond
	first := plan.Clients[0].Requests[0]
	second := first
	second.Token++
	second.GiveUp = 1150 * time.Millisecond // within the 100 ms of the header
	second.Responses = []ResponsePlan{first.Responses[0]}
	second.Responses[0].Body = BodyPlan{Length: 1, Cut: true, How: FaultSilence}
	plan.Clients[0].Requests = []ExchangePlan{first, second}
	if sights := unbroken(t, plan).sights[2]; len(sights) != 2 || !sights[0].Wrote {
		t.Errorf("targets saw the request %d times, want 2, and a response before that", len(sights))
	}
}

// The time in which a client accepts interim responses does not count as the target's.
func TestTimeOfInterimResponses(t *testing.T) {
	interim := func(list []oddity, name string) int {
		for i := range list {
			if list[i].name == name {
				return i + 1
			}
		}
		t.Fatalf("no oddity is called %q", name)
		return 0
	}
	var frames []oddity
	for i := range frameOddities {
		frames = append(frames, frameOddities[i].oddity)
	}
	for _, c := range []struct {
		name     string
		response ResponsePlan
		want     step
	}{
		{"none", ResponsePlan{}, stepFail},
		{"another oddity", ResponsePlan{Odd: interim(oddities, "no reason")}, stepFail},
		{"planned", ResponsePlan{Interim: 1}, stepUnclear},
		{"odd", ResponsePlan{Odd: interim(oddities, "several kinds of interim responses")}, stepUnclear},
		{"large", ResponsePlan{Odd: interim(oddities, "interim responses that are too large")}, stepUnclear},
		{"by frames", ResponsePlan{OddFrames: interim(frames, "interim responses of HTTP/2")}, stepUnclear},
	} {
		plan := simplest()
		plan.Upstream.FailLatency = time.Second
		e := &plan.Clients[0].Requests[0]
		e.Responses = []ResponsePlan{c.response}
		m := &model{w: &world{plan: plan, journal: NewJournal(), exchanges: map[uint32]*ExchangePlan{1: e}}}
		p := &Passage{Token: 1, Attempts: make([]Attempt, 1)}
		p.Attempts[0].Status, p.Attempts[0].TimeToHeader = 200, 2*time.Second
		if got := m.outcome(p, 0); got != c.want {
			t.Errorf("%s: a late header is %v to the target's health, want %v", c.name, got, c.want)
		}
	}
}

// The end of a response over HTTP/2 is a frame of its own, which may come too late: the target is to blame for that. The
// client, which has not received the last byte, does not take the response for a whole one.
func TestPauseBeforeTheEndOfAStream(t *testing.T) {
	late := false
	for at := int64(100); at < 250 && !late && !t.Failed(); at++ { // somewhere there
		plan := simplest()
		plan.Gateway.H2Targets, plan.Gateway.BodyTimeout = true, 5*time.Second
		plan.Clients[0].Requests[0].Responses[0].Body.Length = 16
		plan.Targets[0].Links.Back = []Fault{{Kind: FaultPause, At: at, Pause: 10 * time.Second}}
		j := unbroken(t, plan)
		o := j.outcomes[1]
		late = o.Got == 15 && !o.Whole && slices.ContainsFunc(j.passages, func(p *Passage) bool { return p.Token == 1 && p.Failure != nil })
	}
	if !late {
		t.Error("no pause was between the content and the end of the stream")
	}
}

// The time that a program's trace takes when net/http's transport has a connection does not count as the target's, also if
// HeaderTimeout ends meanwhile.
func TestTraceAtTheEndOfTheTime(t *testing.T) {
	plan := simplest()
	plan.Gateway.Transport = true
	plan.Gateway.Filters = []FilterPlan{{Kind: kindOf(timeoutName), A: 1}}
	plan.Targets[0].Dials = []Dialling{{Delay: 5*time.Second - 20*time.Millisecond}}
	plan.Clients[0].Requests[0].TracePause = 40 * time.Millisecond
	if o := unbroken(t, plan).outcomes[1]; o.Status != 504 {
		t.Errorf("the client saw %d, want 504", o.Status)
	}
}

// The program's own transport bounds the header of a response as the group's does.
func TestStrictTransportBoundsTheHeader(t *testing.T) {
	plan := simplest()
	plan.Gateway.H2Targets, plan.Gateway.Timeout = true, 5*time.Second
	plan.waitForStreams()
	plan.Targets[0].ByFrames, plan.Targets[0].Frames = true, FramesPlan{Window: 65535, Step: 65535, Table: 4096}
	plan.Clients[0].Requests[0].Responses[0].OddFrames = 1 + slices.IndexFunc(frameOddities, func(o frameOddity) bool { return o.name == "a header list that is too large" })
	if o := unbroken(t, plan).outcomes[1]; o.Status != 502 {
		t.Errorf("the client saw %d, want 502", o.Status)
	}
}

// No scene removes the bounds without which an exchange with a silent target would never end.
func TestScenesKeepBounds(t *testing.T) {
	for i := range scenes {
		plan := simplest()
		plan.Clients[0].Pipelined = true
		plan.boundTargets()
		plan.addScene(Repeat([]uint32{uint32(i + 1)}))
		if g := &plan.Gateway; g.BodyTimeout == 0 || g.HeaderTimeout == 0 {
			t.Errorf("scene %d: BodyTimeout is %v, HeaderTimeout %v", i+1, g.BodyTimeout, g.HeaderTimeout)
		}
	}
}

// A target of HTTP/2 that resets its stream before the client has broken off its body is to blame for the failure, also if the
// header of its response was not sent.
func TestResetBeforeABodyIsBrokenOff(t *testing.T) {
	for _, broken := range []ResponsePlan{
		{Status: 200, Early: true, Body: BodyPlan{Length: 100, Cut: true}},
		{Status: 200, Early: true, Garbage: true},
	} {
		plan := simplest()
		plan.Gateway.H2Targets, plan.Gateway.Transport = true, true
		e := &plan.Clients[0].Requests[0]
		e.Method, e.Expect, e.Body = "POST", true, BodyPlan{Length: 10, Chunked: true, Cut: true, How: FaultSilence}
		e.Responses = []ResponsePlan{broken}
		if o := unbroken(t, plan).outcomes[1]; o.Status != 502 {
			t.Errorf("%+v: the client saw %d, want 502", broken, o.Status)
		}
	}
}
