package simulate

import (
	"bufio"
	"io"
	"net/http"
	"slices"
	"time"
)

// StaleKind says how a target ends a kept connection when a request arrives on it. To the gateway this looks as if the
// connection had been idle for too long, and ended while the request was on its way.
type StaleKind int

const (
	// NotStale serves the request.
	NotStale StaleKind = iota
	// StaleClosed closes the connection without a response.
	StaleClosed
	// StaleReset resets it.
	StaleReset
	// StaleBegun closes it within the header of the response.
	StaleBegun
)

// String returns what the target does.
func (k StaleKind) String() string {
	return [...]string{"serves", "closes", "resets", "begins and closes"}[k]
}

// addStale chooses targets that end kept connections, and ones that are slow to accept the next ones.
func (p *Plan) addStale(c *Choices) {
	if !c.Bool(5) {
		return
	}
	slow := c.Bool(2)
	for i := range p.Targets {
		for range 8 {
			if slow {
				p.Targets[i].Dials = append(p.Targets[i].Dials, Dialling{Delay: time.Duration(c.Int(50)) * 5 * time.Millisecond})
			}
		}
	}
	for i := range p.Clients {
		for k := range p.Clients[i].Requests {
			for n := range p.Clients[i].Requests[k].Responses {
				r := &p.Clients[i].Requests[k].Responses[n]
				r.Stale = StaleKind(max(0, c.Int(8)-4))
				if c.Bool(3) && !r.Close && r.Framing != ByClose {
					r.Unasked = time.Duration(1+c.Int(100)) * 2 * time.Millisecond
				}
			}
		}
	}
}

// goStale ends a kept connection on which a request has arrived.
func (t *target) goStale(c *Conn, r *ResponsePlan, s *Sight) {
	t.world.journal.faults.Add("a target "+r.Stale.String()+" on a kept connection", 1)
	switch r.Stale {
	case StaleReset:
		c.Reset()
	case StaleBegun:
		s.Wrote = true
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nX-To")
		_ = c.CloseWrite()
	default:
		_ = c.CloseWrite() // else the request's body would make the end a reset
	}
	_ = c.SetReadDeadline(time.Now().Add(500 * time.Millisecond))
	_, _ = io.Copy(io.Discard, onlyReader{c})
}

// alone is how much longer than the network's delay a request may be on its way over real sockets.
const alone = time.Second

// unasked sends a 408 on an idle connection, as some servers do before they close it, and checks that no request is sent
// after it has arrived: a client that receives a response without a request closes the connection (RFC 9112 section 9.2).
// It reports whether the connection is kept.
func (t *target) unasked(c *Conn, in *bufio.Reader, r *ResponsePlan) bool {
	_ = c.SetReadDeadline(time.Now().Add(r.Unasked))
	if _, err := in.Peek(1); err == nil {
		return true
	}
	t.world.journal.faults.Add("a response to no request", 1)
	if _, err := io.WriteString(c, "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n"); err != nil {
		return false
	}
	told, arrives := c.out.arrival()
	if t.world.sockets != nil {
		told = told.Add(alone)
	}
	_ = c.SetReadDeadline(time.Now().Add(31 * time.Second))
	if p, _ := in.Peek(1); len(p) == 0 {
		if c.in.lost() {
			t.world.journal.noteLost(t.plan.Addr)
		}
		return false
	}
	if sent := c.in.sendingSince(); !arrives || !sent.After(told) {
		t.noteCrossed(in)
	} else {
		t.world.journal.Break("unasked", "%s got a request on a connection on which a response without a request had arrived", t.plan.Addr)
	}
	return false
}

// noteCrossed records the request that begins in. The gateway may take the response without a request for its response,
// since each of the two was sent before the other one arrived.
func (t *target) noteCrossed(in *bufio.Reader) {
	j := t.world.journal
	r, err := http.ReadRequest(in)
	if err != nil {
		j.noteLost(t.plan.Addr) // a part of it
		return
	}
	if !t.based(r) {
		return
	}
	token, _ := tokenOf(r.RequestURI)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.crossed[token] = true
}

// noteLost records that the link to target has lost a request that may have crossed a response to none.
func (j *Journal) noteLost(target string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lost[target] = true
}

// mayCross reports whether the gateway may have taken a response to none for that of the request: a target has noted it,
// or its link has lost a request, and no target has seen this one. The caller holds j.mu.
func (j *Journal) mayCross(token uint32) bool {
	if j.crossed[token] || len(j.sights[token]) > 0 {
		return j.crossed[token]
	}
	return slices.ContainsFunc(j.passages, func(p *Passage) bool {
		return p.Token == token && slices.ContainsFunc(p.Attempts, func(a Attempt) bool { return j.lost[a.Target] })
	})
}

// noneWaits checks that no request has arrived before the response to the previous one was sent: a gateway does not pipeline.
func (t *target) noneWaits(c *Conn, in *bufio.Reader, r *ResponsePlan, s *Sight) {
	if !s.Whole || t.world.sockets != nil || r.Body.Pause > 0 && r.Framing == ByLength {
		return // the target may have paused after the last byte
	}
	_ = c.SetReadDeadline(time.Now().Add(1))
	if p, _ := in.Peek(1); len(p) > 0 {
		t.world.journal.Break("next", "%s got more on a connection before it had responded", t.plan.Addr)
	}
	_ = c.SetReadDeadline(time.Time{})
}
