package simulate

import (
	"errors"
	"net"
	"slices"
	"time"

	"github.com/culvert-go/culvert"
)

// checkTimes: an exchange ends within the sum of its documented timeouts, and no timeout ends it too early. The caller
// holds the journal's mutex.
func (w *world) checkTimes() {
	for _, p := range w.journal.passages {
		t := times{w: w, g: &w.plan.Gateway, p: p, e: w.exchanges[p.Token]}
		t.refusedSoon()
		if t.e == nil || p.Proxied == 0 || w.clientOf(p.Token).Kind == Malformed {
			continue // the probe, a request that a filter refused, or an upgrade that does not match its plan
		}
		if p.Silent && !w.plan.hasPanics() && !t.e.Panics && !p.DialPanicked && !p.Raised {
			w.journal.breakAt(p.Left, "told", "#%d: the response is broken off, and the record tells no failure", p.Token)
		}
		t.whole()
		t.waited()
		t.left()
		t.bodyTooSlow()
		for i := range p.Attempts {
			t.attempt(&p.Attempts[i])
			t.streamed(&p.Attempts[i])
		}
		t.body()
		t.discarded()
		t.broke()
		t.gone()
		t.seen()
		t.vain()
		t.dropped()
		t.accepted()
		t.dialPanicked()
	}
}

// times checks the times of one passage.
type times struct {
	w *world
	g *GatewayPlan
	p *Passage
	e *ExchangePlan
}

// slack is the time for the network's delays, in addition to the bounds.
const slack = 2 * time.Second

// late returns how late a bound of d may take effect: a quarter of it later.
func late(d time.Duration) time.Duration { return d + d/4 }

func (t *times) fail(at time.Duration, format string, args ...any) {
	t.w.journal.breakAt(at, "time", "#%d: "+format, append([]any{t.p.Token}, args...)...)
}

// whole: Timeout bounds an exchange that is not an upgrade.
func (t *times) whole() {
	whole := t.g.Timeout
	if c := t.w.clientOf(t.p.Token); c.TLS && !c.Kind.overHTTP2() {
		whole += closeNotify
	}
	if t.e.Resumed {
		whole += listingTime
	}
	if t.g.Timeout > 0 && !t.p.Upgrade && t.p.Returned-t.p.Proxied > whole+t.heldByWrites()+slack {
		t.fail(t.p.Returned, "it took %v, Timeout is %v", t.p.Returned-t.p.Proxied, t.g.Timeout)
	}
}

// heldByWrites returns how long a client that reads nothing may hold an exchange beyond its bounds: WriteTimeout for a write
// to it, of an error response for instance. Over HTTP/2 WriteByteTimeout ends the connection, which may have written a part
// meanwhile (proxy.Options.WriteTimeout).
func (t *times) heldByWrites() time.Duration {
	if c := t.w.clientOf(t.p.Token); len(c.Links.There)+len(c.Links.Back) > 0 || t.e.ReadAfter > 0 || c.readsSlowly() {
		return late(t.g.WriteTimeout) + 2*writeByteTimeout
	}
	return 0
}

// readsSlowly reports whether the client may still read another response of the same connection, at its own pace.
func (c *ClientPlan) readsSlowly() bool {
	return (c.Pipelined || c.Kind.overHTTP2()) && slices.ContainsFunc(c.Requests, func(e ExchangePlan) bool { return e.ReadPause > 0 || e.ReadAfter > 0 })
}

// left: an exchange ends soon after its client has disconnected. net/http's server notices that while no body is to be
// read, on a connection without pipelined requests. Behind the limit of a BodyLimit nothing of a body can be read, so
// nothing notices it.
func (t *times) left() {
	o := t.w.journal.outcomes[t.p.Token]
	c := t.w.clientOf(t.p.Token)
	if o == nil || !o.LeftAlone || t.p.Upgrade || c.Pipelined || len(c.Links.There)+len(c.Links.Back) > 0 || t.w.passage(t.e, c.Kind).last.over {
		return
	}
	gone := o.Ended.Sub(t.w.journal.start)
	bound := slack
	if t.p.Body && !t.unasked(o) { // the body is not read while the request waits for a target, or the target accepts none of it
		tries := time.Duration(len(t.p.Attempts) + 1)
		bound += t.g.RetryWait + tries*(t.w.plan.Upstream.queueTimeout()+t.g.DialTimeout+late(t.g.TargetWrite)+t.windows()+t.unbounded())
	}
	if t.p.Returned > gone+bound {
		t.fail(t.p.Returned, "it ends %v after its client has gone", t.p.Returned-gone)
	}
}

// windows returns how long a target may take to open its windows for the whole of the request's body. No piece takes too
// long, and the bytes that the client has sent before it left are read first.
func (t *times) windows() (most time.Duration) {
	for _, target := range t.w.plan.Targets {
		if f := target.Frames; target.ByFrames && f.Late > 0 {
			most = max(most, time.Duration(t.e.Body.Length/int64(max(1, f.Step))+1)*f.Late)
		}
	}
	return most
}

// unbounded is how long a wait for a window of HTTP/2 lasts over a transport that the proxy does not know as upstream's
// (upstream.Options.WriteTimeout): until pings find that the connection is dead.
func (t *times) unbounded() time.Duration {
	if !t.g.Transport {
		return 0
	}
	return 2 * t.ping()
}

// unasked reports whether the client has received the header of a response instead of a 100, and so sends no body.
func (t *times) unasked(o *Outcome) bool {
	return t.e.Expect && t.e.Manner == ExpectForEver && !o.Continued && o.Header != nil
}

// clientOf returns the plan of the client that sends a request.
func (w *world) clientOf(token uint32) *ClientPlan {
	for i := range w.plan.Clients {
		for k := range w.plan.Clients[i].Requests {
			if w.plan.Clients[i].Requests[k].Token == token {
				return &w.plan.Clients[i]
			}
		}
	}
	return nil
}

// bodyTooSlow: the client is not too slow before ReadTimeout has passed without a piece of its body.
func (t *times) bodyTooSlow() {
	f := t.p.Failure
	if f == nil || f.Kind != culvert.BodyTooSlow || t.wholeEnded(t.p.FailedAt) {
		return
	}
	bound := t.g.ReadTimeout
	if t.p.Upgrade {
		bound = bounds(bound, handshakeTimeout)
	}
	if took := t.p.FailedAt - t.p.Entered; took < bound {
		t.fail(t.p.FailedAt, "its body is too slow after %v, it has %v", took, bound)
	}
}

// wholeEnded reports whether the time of the whole exchange had ended at a moment.
func (t *times) wholeEnded(at time.Duration) bool {
	return t.p.TimedOut || t.g.Timeout > 0 && at-t.p.Proxied >= t.g.Timeout
}

// attempt checks one attempt.
func (t *times) attempt(a *Attempt) {
	t.early(a)
	switch {
	case t.p.Upgrade:
		t.handshake(a)
	case !t.p.Body:
		t.connect(a)
		t.header(a)
	}
}

// early: an attempt does not time out before one of its timeouts has passed.
func (t *times) early(a *Attempt) {
	var e *culvert.Error
	if !errors.As(a.Err, &e) || e.Kind != culvert.Timeout || t.wholeEnded(a.Ended) {
		return
	}
	had, least := a.Total, bounds(t.g.DialTimeout)
	switch {
	case t.p.Upgrade:
		least = bounds(t.g.DialTimeout, handshakeTimeout)
	case !e.BytesSent, dialling(e): // behind a connection that was kept too long, or a GOAWAY that left the request out, perhaps
	case a.TimeToHeader > 0:
		had, least = a.Total-a.TimeToHeader, bounds(t.g.BodyTimeout, t.g.TargetWrite, t.ping())
	case a.TimeToConnect > 0:
		had, least = a.Total-a.TimeToConnect, bounds(t.g.HeaderTimeout, t.g.TargetWrite, t.ping(), t.unended())
	}
	if had < least-tick { // a connection that was kept takes a nanosecond (culvert.Attempt)
		t.fail(a.Ended, "%s has timed out after %v, it has %v: %v", a.Target, had, least, e)
	}
}

// bounds returns the shortest bound that is set.
func bounds(list ...time.Duration) time.Duration {
	least := longest
	for _, d := range list {
		if d > 0 {
			least = min(least, d)
		}
	}
	return least
}

// pingInterval is upstream.Options.PingInterval's default: how long a connection may be silent before a PING, and how
// long that may have no response.
const pingInterval = 15 * time.Second

// ping is PingInterval, for targets that speak HTTP/2.
func (t *times) ping() time.Duration {
	if t.g.H2Targets {
		return pingInterval
	}
	return 0
}

// unended is how long a target that speaks HTTP/2 may leave the stream of a response without content open. The header is held
// until then.
func (t *times) unended() time.Duration {
	if t.g.H2Targets && slices.ContainsFunc(t.e.Responses, func(r ResponsePlan) bool { return r.Body.Length == 0 }) {
		return t.g.BodyTimeout
	}
	return 0
}

// handshakeTimeout is wsupgrade.Options.HandshakeTimeout's default.
const handshakeTimeout = 10 * time.Second

// handshake: HandshakeTimeout bounds the dial and the header together.
func (t *times) handshake(a *Attempt) {
	took := a.TimeToHeader
	if a.Err != nil && took == 0 {
		took = a.Total
	}
	if took > handshakeTimeout+slack {
		t.fail(a.Ended, "%s took %v for a handshake", a.Target, took)
	}
}

// dialling reports whether e is the failure of a dial.
func dialling(e error) bool {
	var op *net.OpError
	return errors.As(e, &op) && op.Op == "dial"
}

// connections returns over how many connections one attempt may be sent: another one follows each that the target may have
// closed meanwhile.
func (t *times) connections() time.Duration {
	if t.g.Transport || t.g.H2Targets || t.g.Hedge > 0 {
		return time.Duration(len(t.w.exchanges) + 1)
	}
	return 2
}

// connect: DialTimeout bounds the time to a connection, HeaderTimeout the time on one that was kept too long.
func (t *times) connect(a *Attempt) {
	took, bound := a.TimeToConnect, t.g.DialTimeout
	if a.TimeToConnect == 0 {
		took = a.Total
	}
	if a.TimeToConnect == 0 && a.Err == nil || took <= bound+slack {
		return
	}
	if t.g.HeaderTimeout <= 0 || took <= bound+(t.connections()-1)*(bound+late(t.g.HeaderTimeout))+slack {
		return
	}
	t.fail(a.Ended, "%s took %v for a connection, DialTimeout is %v", a.Target, took, bound)
}

// header: HeaderTimeout bounds the time to the header of the response, DialTimeout the time to another connection if the
// first one, which had been kept, was closed meanwhile.
func (t *times) header(a *Attempt) {
	if a.TimeToConnect == 0 || t.g.HeaderTimeout <= 0 || t.g.Strict { // a strict transport waits for a stream before
		return
	}
	took := a.TimeToHeader - a.TimeToConnect
	if a.TimeToHeader == 0 {
		took = a.Total - a.TimeToConnect
	}
	bound := late(t.g.HeaderTimeout)
	if e := (*culvert.Error)(nil); errors.As(a.Err, &e) && !e.BytesSent { // no connection took the request: the last dial failed
		bound = (t.connections() - 1) * (bound + t.g.DialTimeout)
	}
	if a.TimeToConnect <= time.Microsecond && !t.w.smooth(t.p.Token) { // kept: it may still hold the body of the request before
		bound += late(t.g.TargetWrite)
	}
	if took > bound+t.heldByWrites()+slack { // interim responses are written meanwhile
		t.fail(a.Ended, "%s took %v for its header, HeaderTimeout is %v", a.Target, took, t.g.HeaderTimeout)
	}
}

// body: a response's body takes the target's own time and the network's, and BodyTimeout if the target falls silent. This
// is checked if nothing else takes time.
func (t *times) body() {
	n := len(t.p.Attempts) - 1
	if n < 0 || t.p.Upgrade || t.p.Body || !t.w.smooth(t.p.Token) {
		return
	}
	a, s := &t.p.Attempts[n], t.w.journal.sightOf(t.p, n)
	if s == nil {
		return
	}
	plan := &t.e.response(s.Attempt).Body
	bound := transfer + t.e.response(s.Attempt).HeaderPause
	if plan.Piece > 0 {
		bound += time.Duration(1+plan.Length/int64(plan.Piece)) * plan.Pause
	}
	if plan.Piece == 0 {
		bound += time.Duration(1+plan.Length/(32<<10)) * plan.Pause
	}
	if plan.Cut && plan.How == FaultSilence {
		if t.g.BodyTimeout == 0 {
			return
		}
		bound += late(t.g.BodyTimeout)
	}
	if t.e.Resumed {
		bound += listingTime
	}
	if took := a.Total - a.TimeToHeader; a.TimeToHeader > 0 && took > bound {
		t.fail(a.Ended, "the body of %s took %v, its bounds %v", a.Target, took, bound)
	}
}

// transfer is more than the longest body needs over the slowest network.
const transfer = 10 * time.Second

// smooth reports whether only a target takes time: no link fails, and no client that shares the connection pauses.
func (w *world) smooth(token uint32) bool {
	c := w.clientOf(token)
	fails := c.Kind == Frames || len(c.Links.There)+len(c.Links.Back) > 0 || w.plan.Upstream.resets() // frames open their windows late
	for i := range w.plan.Targets {
		fails = fails || len(w.plan.Targets[i].Links.There)+len(w.plan.Targets[i].Links.Back) > 0
	}
	return !fails && !slices.ContainsFunc(c.Requests, func(e ExchangePlan) bool { return e.ReadPause > 0 || e.GiveUp > 0 || e.ReadAfter > 0 })
}
