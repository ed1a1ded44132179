// Package wsupgrade forwards upgrades (WebSocket and whatever else is allowed by name)
// to a target and tunnels the bytes of the two sides, from the very first one.
//
// An upgrade goes through the same ServeHTTP as every other request; there is
// no second way in that a first request would have to open. The handshake is
// checked, the target is dialled by this package, its 101 is validated, and only
// then is the client's connection taken over. Any other answer is relayed
// as it is, and whatever the client sent after its handshake stays its next
// request. Every refusal is answered. A browser's WebSocket over HTTP/2 (package
// extendedconnect) is bridged to a target that speaks HTTP/1.1.
//
// A Forwarder's Handler stands behind any mux; Forward and Start are for handlers that
// choose a target themselves; package proxy does so for an upstream group. A Registry
// lists the open tunnels, bounds their number and ends them with a Close frame when the
// server goes down. An Observer looks into a WebSocket's messages. Restore is for those
// who stand behind a proxy that strips the handshake.
//
// Tunnels between plain sockets are moved by a few loops on Linux; with TLS, over HTTP/2,
// with an Observer and on other systems by a goroutine for each direction. Both do the
// same: what either side sent early is delivered, the end of one direction is passed on
// while the other goes on, and a side that takes nothing holds up the one that sends.
//
// # What an idle tunnel costs
//
// Besides its two descriptors and what the kernel keeps for them, an idle tunnel over plain
// sockets on Linux holds
//
//   - some 28 KiB with Handler, Forward and package proxy's default: the handler waits for the
//     tunnel's end, and with it net/http's goroutine, its stack, its buffers and the request;
//   - some 2 KiB with Start and proxy.Options.DetachTunnels, which let the handler return;
//   - some 7 KiB with those two where a goroutine moves each direction (Options.Portable), and
//     more with TLS, whose state stays.
//
// The handler waits by default because what stands around it relies on that: a filter sees
// the request end with the tunnel, so that logs tell its bytes and its duration, a limit of
// concurrent requests counts it, and a context that is cancelled around the handler (a token
// that expires, for instance) ends it. Where nothing of that is needed, or the Registry and the
// function that Start calls at the end do it, let the handler return. An HTTP/2 stream ends
// with its handler, which waits in each case.
package wsupgrade
