package command

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"
)

// newcomerGrace is how long a connection may take to send its first request once
// its configuration has been replaced, as http.Server.Shutdown grants it.
const newcomerGrace = 5 * time.Second

// newcomers are the connections of a generation on which a request may come or has
// come, and no handler has it yet. Shutdown must wait for them: a request that
// http.Server has read from its connection when it shuts down is dropped without an
// answer (net/http/server.go, conn.serve, behind readRequest).
type newcomers struct {
	mu    sync.Mutex
	conns map[net.Conn]struct{}
	none  chan struct{} // closed when the last one has gone; nil if nobody waits
}

// track is an http.Server.ConnState. A connection becomes active before its request
// has come to the handler.
func (n *newcomers) track(conn net.Conn, state http.ConnState) {
	if state == http.StateNew || state == http.StateActive {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.conns[conn] = struct{}{}
		return
	}
	n.gone(conn)
}

// gone is called when a request has come to its handler, or none will come.
func (n *newcomers) gone(conn net.Conn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.conns, conn)
	if len(n.conns) == 0 && n.none != nil {
		close(n.none)
		n.none = nil
	}
}

// connKey is the context's key of the connection that a request came on.
type connKey struct{}

// connContext is an http.Server.ConnContext around another one.
func (n *newcomers) connContext(inner func(context.Context, net.Conn) context.Context) func(context.Context, net.Conn) context.Context {
	return func(ctx context.Context, conn net.Conn) context.Context {
		if inner != nil {
			ctx = inner(ctx, conn)
		}
		return context.WithValue(ctx, connKey{}, conn)
	}
}

// arrived is gone for the connection of a request.
func (n *newcomers) arrived(r *http.Request) {
	if conn, ok := r.Context().Value(connKey{}).(net.Conn); ok {
		n.gone(conn)
	}
}

// wait returns when there are none, or after their grace, or at the end of ctx.
// Nothing may accept any more when it is called.
func (n *newcomers) wait(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, newcomerGrace)
	defer cancel()
	n.mu.Lock()
	if len(n.conns) == 0 {
		n.mu.Unlock()
		return
	}
	none := make(chan struct{})
	n.none = none
	n.mu.Unlock()
	select {
	case <-none:
	case <-ctx.Done():
	}
}
