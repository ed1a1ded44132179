package vars

import (
	"context"
	"net"
	"sync/atomic"
)

// Conn numbers a client's connection and counts its requests.
type Conn struct {
	// Serial is the connection's number.
	Serial uint64
	// Requests counts the requests so far.
	Requests atomic.Int64
}

// Conns numbers connections, starting with 1.
type Conns struct{ last atomic.Uint64 }

type connKey struct{}

// Context is an http.Server's ConnContext.
func (c *Conns) Context(ctx context.Context, _ net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, &Conn{Serial: c.last.Add(1)})
}

// ConnFrom returns the connection that ctx carries; one with the number 0 if
// the server was not given a ConnContext.
func ConnFrom(ctx context.Context) *Conn {
	if c, ok := ctx.Value(connKey{}).(*Conn); ok {
		return c
	}
	return &Conn{}
}
