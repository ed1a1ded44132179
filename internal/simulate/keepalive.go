package simulate

import (
	"slices"
	"time"
)

// pingAfter returns how long a connection of HTTP/2 is silent before the server sends a PING; 0: never. The server does if
// it responds by itself, with a page of net/http's, to a client whose link falls silent: without WriteTimeout that page
// waits for the client's window as long as the connection lasts, and the network has no TCP keep-alive, by which the
// kernel would notice that the client has gone. The gateway's own writes are bounded without it.
func (p *Plan) pingAfter() time.Duration {
	if slices.ContainsFunc(p.Clients, func(c ClientPlan) bool { return c.silent() && c.refusedByServer() }) {
		return p.takes(5 * time.Minute)
	}
	return 0
}

// silent reports whether a link of the client's falls silent.
func (c *ClientPlan) silent() bool {
	silence := func(f Fault) bool { return f.Kind == FaultSilence }
	return slices.ContainsFunc(c.Links.There, silence) || slices.ContainsFunc(c.Links.Back, silence)
}

// refusedByServer reports whether net/http's server responds by itself to one of the client's streams.
func (c *ClientPlan) refusedByServer() bool {
	return slices.ContainsFunc(c.Frames.Bad, func(b BadStream) bool { return b.Resets == 0 && badStreams[b.Kind].server })
}
