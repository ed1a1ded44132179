package simulate

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/upstream"
)

// addWaiting chooses histories in which requests wait for a target (proxy.Retry.Wait), most often since all refuse connections
// for a while, those in which they are hedged (proxy.Retry.Hedge), and those in which a Picker of the program's own stands before
// the group.
func (p *Plan) addWaiting(c *Choices) {
	if c.Bool(10) {
		p.Gateway.RetryWait = seconds(Pick(c, 1, 5, 20))
		if from := someTime(c); c.Bool(2) {
			ill := Illness{from, from + time.Duration(1+c.Int(80))*100*time.Millisecond, IllDown}
			for i := range p.Upstream.Targets {
				p.Upstream.Targets[i].Ill = append(p.Upstream.Targets[i].Ill, ill)
			}
		}
	}
	p.Gateway.Picker = c.Bool(8)
	if c.Bool(10) && !p.asksKubernetes() { // whose responses differ by attempt
		p.Gateway.Hedge = Pick(c, 100*time.Millisecond, 5*time.Millisecond, time.Second)
	}
}

// asksKubernetes reports whether a request is for Kubernetes.
func (p *Plan) asksKubernetes() bool {
	for i := range p.Clients {
		if slices.ContainsFunc(p.Clients[i].Requests, func(e ExchangePlan) bool { return e.Kube != KubeNothing }) {
			return true
		}
	}
	return false
}

// picker is a program's own Picker.
type picker struct{ group *upstream.Group }

// Pick implements upstream.Picker.
func (p picker) Pick(ctx context.Context, r *http.Request, tried ...upstream.Lease) (upstream.Lease, error) {
	return p.group.Pick(ctx, r, tried...)
}

// waited: a request without a target, or one that was not sent, waits for one as long as proxy.Retry.Wait says, and not longer.
func (t *times) waited() {
	wait := t.g.RetryWait
	if wait == 0 || t.p.FailedAt == 0 || !t.unsent() {
		return
	}
	over := t.p.Proxied + wait
	begun := t.p.Picking // the client's body was awaited before
	if n := len(t.p.Attempts); n > 0 {
		begun = t.p.Attempts[n-1].Ended
	}
	if t.w.plan.bounded() { // it has waited in the queue, too
		begun += t.w.plan.Upstream.queueTimeout()
	}
	t.w.journal.manners.Add("gateway: no target within Retry.Wait", 1)
	switch {
	case t.p.FailedAt > max(over, begun)+slack:
		t.fail(t.p.FailedAt, "it has waited for a target for %v, Retry.Wait is %v", t.p.FailedAt-t.p.Proxied, wait)
	case t.p.FailedAt < over-tick && t.waitsWhole():
		t.fail(t.p.FailedAt, "it fails without a target after %v, Retry.Wait is %v", t.p.FailedAt-t.p.Proxied, wait)
	}
}

// unsent reports whether the request got no target, or none that could be dialled.
func (t *times) unsent() bool {
	f := t.p.Failure
	return f != nil && !f.BytesSent && (f.Kind == culvert.NoTarget && len(t.p.Attempts) == 0 || f.Kind == culvert.DialFailed && !t.p.Body)
}

// waitsWhole reports whether nothing but Retry.Wait ends the wait of a request.
func (t *times) waitsWhole() bool {
	plan, o := t.w.plan, t.w.journal.outcomes[t.p.Token]
	if o == nil || o.Status == 0 || t.e.HalfClose {
		return false // its client may have gone, or net/http's server takes its end for that
	}
	if t.g.Dynamic && t.g.MaxTargets > 0 {
		return false // the target that is requested again may be one too many by then
	}
	return t.g.Timeout == 0 && !plan.has(timeoutName) && !plan.drains() && !plan.bounded() && t.g.MaxInFlight == 0 &&
		t.g.Tries == 0 && !t.g.Budget && !t.p.DialPanicked && !t.p.Raised
}
