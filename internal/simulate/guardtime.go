package simulate

import (
	"errors"
	"os"
	"slices"
	"strings"
	"time"
)

// write begins a write to the client, and notices a concurrent one. The function that it returns ends the write, and
// checks that it ended within WriteTimeout.
func (g *guarded) write(what string) (end func()) {
	start := time.Now()
	g.alone(what, true)
	g.check(what)
	return func() {
		g.mu.Lock()
		g.writing = ""
		g.mu.Unlock()
		bound := within(g.plan.WriteTimeout)
		if p := g.passage; p == nil || p.Proxied == 0 {
			bound = max(bound, within(ownTimeout)) // a filter's refusal
		}
		if g.r.ProtoMajor == 2 {
			bound += 2 * time.Minute // the server's WriteByteTimeout, for the write of another stream's and for this one
		}
		bound += g.closing()
		if what == "ReadFrom" || !g.timed {
			return // it lasts as long as the body
		}
		if took := time.Since(start); took > bound {
			g.j.Break("time", "%s: %s lasted %v, WriteTimeout is %v", g.path, what, took, g.plan.WriteTimeout)
		}
	}
}

// closing is how long net/http's server may take, within a failed write over TLS, to close its connection: crypto/tls
// waits up to five seconds for the write of the closing alert (proxy.Options.WriteTimeout).
func (g *guarded) closing() time.Duration {
	if g.r.TLS != nil && g.r.ProtoMajor == 1 {
		return closeNotify
	}
	return 0
}

// closeNotify is the timeout of that alert.
const closeNotify = 5 * time.Second

// checkRead checks that a read of the body that began at start has ended within ReadTimeout, or that of an upgrade within
// HandshakeTimeout (wsupgrade.Forwarder.Forward). It does not check the reads of a body whose target responds before its
// end: the rest need not come then.
func (b *guardedBody) checkRead(start time.Time) {
	took, bound := time.Since(start), b.plan.ReadTimeout
	if opensTunnel(b.r) {
		bound = handshakeTimeout
	}
	if took <= within(bound) || !b.timed {
		return
	}
	token, _ := tokenOf(b.path)
	if e := b.j.exchanges[token]; e != nil && !e.early() {
		b.j.Break("time", "%s: a read of the body lasted %v, it has %v", b.path, took, bound)
	}
}

// checkWhole checks that the exchange has ended within Timeout, except for what the filters wrote after the proxy had
// returned.
func (g *guarded) checkWhole() {
	queued := slices.ContainsFunc(g.plan.Filters, func(f FilterPlan) bool { return filterKinds[f.Kind].name == "Concurrency" })
	if !g.timed || g.plan.Timeout == 0 || g.r.ProtoMajor == 2 || g.taken || queued || g.r.Header.Get("Upgrade") != "" {
		return
	}
	bound := g.plan.Timeout + g.closing() + tolerance
	if strings.HasPrefix(g.path, resumedPath) {
		bound += listingTime
	}
	if took := time.Since(g.start); took > bound && !g.returnedWithin(bound) {
		g.j.Break("time", "%s: the exchange lasted %v, Timeout is %v", g.path, took, g.plan.Timeout)
	}
}

// returnedWithin reports whether the proxy has returned within bound, and the filters have written the rest of the
// response within the time of one write: WriteTimeout, or the timeout of a filter that holds another handler's response.
func (g *guarded) returnedWithin(bound time.Duration) bool {
	p := g.passage
	if p == nil || p.Returned == 0 || p.Returned-p.Entered > bound {
		return false
	}
	last := g.plan.WriteTimeout
	if slices.ContainsFunc(g.plan.Filters, func(f FilterPlan) bool { return slices.Contains(holders, filterKinds[f.Kind].name) }) {
		last = max(last, ownTimeout)
	}
	return g.j.now()-p.Returned <= within(last)+g.closing()
}

// holders are the filters that hold a response, and write it with ownTimeout for each write.
var holders = []string{"Records", "watchcodec"}

// ownTimeout is the timeout of each write of a response that a filter has held, and of a filter's refusal if the server
// has no WriteTimeout. No option changes it.
const ownTimeout = time.Minute

// early reports whether a response may come before the request's end.
func (e *ExchangePlan) early() bool {
	for i := range e.Responses {
		if e.Responses[i].Early || e.Responses[i].Odd > 0 {
			return true
		}
	}
	return false
}

// checkMalformed checks that a client reads well-formed responses over a connection that is not cut. textproto reports also
// a header that breaks off as malformed.
func (c *client) checkMalformed(conn duplex, e *ExchangePlan, err error) {
	if !strings.Contains(err.Error(), "malformed") || e.GiveUp > 0 || len(c.plan.Links.There)+len(c.plan.Links.Back) > 0 {
		return
	}
	_ = conn.SetReadDeadline(time.Now().Add(time.Millisecond))
	if _, next := conn.Read(make([]byte, 1)); next == nil || errors.Is(next, os.ErrDeadlineExceeded) {
		c.world.journal.Break("malformed", "%s #%d: %v", c.name, e.Token, err)
	}
}
