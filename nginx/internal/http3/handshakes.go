package http3

import (
	"context"
	"net"
	"sync/atomic"
)

// maxHandshakes is how many handshakes may be under way before each further client must show that it receives what is sent
// to its address: those of senders with forged addresses never end.
const maxHandshakes = 1000

// handshakes counts those that are under way.
type handshakes struct{ n atomic.Int64 }

// begin counts a handshake until its context ends or accepted is called with it.
func (h *handshakes) begin(ctx context.Context) context.Context {
	h.n.Add(1)
	stop := context.AfterFunc(ctx, func() { h.n.Add(-1) })
	return context.WithValue(ctx, handshakeKey{}, stop)
}

type handshakeKey struct{}

// accepted is called when a handshake is complete.
func (h *handshakes) accepted(ctx context.Context) {
	if stop, ok := ctx.Value(handshakeKey{}).(func() bool); ok && stop() {
		h.n.Add(-1)
	}
}

// many reports whether there are too many.
func (h *handshakes) many(net.Addr) bool { return h.n.Load() >= maxHandshakes }
