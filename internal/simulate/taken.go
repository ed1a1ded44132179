package simulate

import (
	"context"
	"net/http/httptrace"
	"slices"
)

// takenConn is a connection to a target that net/http's transport has used for a request.
type takenConn struct {
	from string // the gateway's address
	idle bool   // it had been idle
}

// traced returns ctx with a trace that records the connections that net/http's transport uses for a request.
func (g *gateway) traced(ctx context.Context, token uint32) context.Context {
	ctx = g.pausing(ctx, token)
	if !(g.plan.Gateway.Transport || g.plan.Gateway.Hedge > 0) {
		return ctx
	}
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		g.journal.mu.Lock()
		defer g.journal.mu.Unlock()
		g.journal.taken[token] = append(g.journal.taken[token], takenConn{info.Conn.LocalAddr().String(), info.Reused})
	}})
}

// tookIdle reports whether net/http's transport had kept the connection on which a target saw the request. In real time the
// connection itself ends at a bridge, so that only the request is known, and not the attempt.
func (r *ruler) tookIdle(s *Sight) bool {
	return slices.ContainsFunc(r.w.journal.taken[r.e.Token], func(t takenConn) bool {
		return t.idle && (t.from == s.From || r.w.sockets != nil)
	})
}
