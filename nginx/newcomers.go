package nginx

import (
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/culvert-go/culvert/internal/gate"
)

// newcomerGrace is how long a connection may take to send its first request once
// its configuration has been replaced, as http.Server.Shutdown grants it.
const newcomerGrace = 5 * time.Second

// idleGrace is how long the idle connections of a replaced configuration are kept: a client that is about to
// send its next request can send it, and is told in the response that it is the connection's last. A request
// that crosses the connection's end is lost, unless the client may repeat it.
const idleGrace = 500 * time.Millisecond

// newcomers are the connections of a generation on which a request is expected or was
// received, and no handler has it yet. Shutdown must wait for them: a request that
// http.Server has read from its connection when it shuts down is dropped without a
// response (net/http/server.go, conn.serve, behind readRequest).
type newcomers struct {
	conns   sync.Map // of net.Conn to *newcomer, of all that are open
	waiting gate.Gate
	open    gate.Gate // all of conns
}

// newcomer is a connection, and whether it is one just now.
type newcomer struct {
	waiting atomic.Bool
}

// track is an http.Server.ConnState. A connection becomes active before its request
// has reached the handler.
func (n *newcomers) track(conn net.Conn, state http.ConnState) {
	known, _ := n.conns.Load(conn)
	c, ok := known.(*newcomer)
	if !ok {
		return
	}
	switch state {
	case http.StateNew, http.StateActive:
		n.come(c)
	case http.StateIdle:
		n.gone(c)
	default:
		if _, first := n.conns.LoadAndDelete(conn); first {
			n.open.Leave()
		}
		n.gone(c)
	}
}

func (n *newcomers) come(c *newcomer) {
	if c.waiting.CompareAndSwap(false, true) {
		n.waiting.Split()
	}
}

// gone is called when a request has reached its handler, or none will.
func (n *newcomers) gone(c *newcomer) {
	if c.waiting.CompareAndSwap(true, false) {
		n.waiting.Leave()
	}
}

// newcomerKey is the context's key of the connection that a request came on.
type newcomerKey struct{}

// connContext is an http.Server.ConnContext around another one. It is called before ConnState.
func (n *newcomers) connContext(inner func(context.Context, net.Conn) context.Context) func(context.Context, net.Conn) context.Context {
	return func(ctx context.Context, conn net.Conn) context.Context {
		if inner != nil {
			ctx = inner(ctx, conn)
		}
		c := &newcomer{}
		n.conns.Store(conn, c)
		n.open.Split()
		return context.WithValue(ctx, newcomerKey{}, c)
	}
}

// arrived is gone for the connection of a request.
func (n *newcomers) arrived(r *http.Request) {
	if c, ok := r.Context().Value(newcomerKey{}).(*newcomer); ok {
		n.gone(c)
	}
}

// waitIdle returns when no connection is open, or after the grace of idle ones, or at the end of ctx.
// Nothing may accept any more when it is called.
func (n *newcomers) waitIdle(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, idleGrace)
	defer cancel()
	_ = n.open.Drain(ctx)
}

// wait returns when there are none, or after their grace, or at the end of ctx.
// Nothing may accept any more when it is called.
func (n *newcomers) wait(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, newcomerGrace)
	defer cancel()
	_ = n.waiting.Drain(ctx)
}
