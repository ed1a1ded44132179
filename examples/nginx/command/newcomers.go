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

// newcomers are the connections of a generation that have sent no request yet.
// Shutdown must wait for them: the request that it lets http.Server read from one
// is dropped without an answer (net/http/server.go, conn.serve).
type newcomers struct {
	mu    sync.Mutex
	conns map[net.Conn]struct{}
	none  chan struct{} // closed when the last one has gone; nil if nobody waits
}

// track is an http.Server.ConnState.
func (n *newcomers) track(conn net.Conn, state http.ConnState) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if state == http.StateNew {
		n.conns[conn] = struct{}{}
		return
	}
	delete(n.conns, conn)
	if len(n.conns) == 0 && n.none != nil {
		close(n.none)
		n.none = nil
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
