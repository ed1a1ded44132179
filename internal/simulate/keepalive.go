package simulate

import (
	"slices"
	"time"
)

// pingAfter is how long a connection of HTTP/2 is silent before the server asks its client whether it is there; 0: never.
// The server does where it has a page of net/http's own for a client whose link falls silent: without WriteTimeout that page
// waits for the client's window as long as the connection lasts, and the network has no keep-alive of TCP, by which the
// kernel would notice that the client has gone. What the gateway itself writes is bounded without it.
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

// refusedByServer reports whether net/http's server responds to a stream of the client's by itself.
func (c *ClientPlan) refusedByServer() bool {
	return slices.ContainsFunc(c.Frames.Bad, func(b BadStream) bool { return b.Resets == 0 && badStreams[b.Kind].server })
}
