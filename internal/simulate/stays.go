package simulate

import (
	"bufio"
	"errors"
	"os"
	"time"
)

// StayKind says what a client does with a connection that is kept behind its last response.
type StayKind int

const (
	// StaysNot closes it.
	StaysNot StayKind = iota
	// StaysIdle waits until the gateway closes it, for its IdleTimeout.
	StaysIdle
	// StaysOpen leaves it open, so that the gateway closes it: in real time when it ends.
	StaysOpen
)

// addStays chooses clients that do not close their connections.
func (p *Plan) addStays(c *Choices) {
	for i := range p.Clients {
		if p.Clients[i].Kind == HTTP1 && c.Bool(4) {
			p.Clients[i].Stays = Pick(c, StaysIdle, StaysOpen)
		}
	}
}

// stay waits until the gateway closes a connection on which nothing is under way: with nothing else sent, and when the
// IdleTimeout of its server has passed. A target may hold its handler up behind the response.
func (c *client) stay(conn duplex, r *bufio.Reader, last *ExchangePlan, o *Outcome) {
	if c.leavesOpen = c.plan.Stays == StaysOpen; c.plan.Stays != StaysIdle {
		return
	}
	w, begun := c.world, time.Now()
	w.journal.manners.Add("stays until IdleTimeout", 1)
	_ = conn.SetReadDeadline(begun.Add(max(w.longest, patience)))
	b, err := r.ReadByte()
	took := time.Since(begun)
	switch {
	case len(c.plan.Links.There)+len(c.plan.Links.Back) > 0:
	case err == nil:
		w.journal.Break("nothing behind", "%s #%d: %q is sent on an idle connection", c.name, last.Token, b)
	case errors.Is(err, os.ErrDeadlineExceeded):
		w.journal.Break("idle", "%s #%d: an idle connection is still open after %v", c.name, last.Token, took)
	case w.breaksBehind(last, c.plan.Kind, o.Attempt):
	case last.hasBody(): // it may have ended behind the response, or not in time
	case w.plan.exact() && took < idleTimeout-slack && last.ReadPause == 0 && last.ReadAfter == 0:
		w.journal.Break("idle", "%s #%d: an idle connection was closed after %v: %v", c.name, last.Token, took, err)
	}
}
