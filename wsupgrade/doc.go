// Package wsupgrade forwards upgrades (WebSocket and other protocols that are allowed by name) to a
// target and tunnels the bytes of the two sides, from the very first one.
//
// An upgrade passes through the same ServeHTTP as every other request; there is no second entry
// point that a first request would have to open. The handshake is checked, the target is dialled by
// this package, its 101 is validated, and only then is the client's connection taken over. Any
// other response is relayed unchanged, and what the client sent after its handshake remains its
// next request. Every refusal is a response with a status. A browser's WebSocket over HTTP/2
// (package extendedconnect) is bridged to a target that speaks HTTP/1.1.
//
// A Forwarder's Handler can be mounted on any mux. Forward and Start are for handlers that choose a
// target themselves, as package proxy does for an upstream group. A Registry lists the open
// tunnels, bounds their number and ends them with a Close frame when the server shuts down. An
// Observer inspects a WebSocket's messages. Restore is for a gateway behind a proxy that strips the
// handshake.
//
// On Linux a few loops move the bytes of tunnels between plain sockets. With TLS, over HTTP/2, with
// an Observer and on other systems a goroutine for each direction does. Both engines behave alike:
// bytes that either side sent early are delivered, the end of one direction is passed on while the
// other continues, and a side that accepts no bytes holds up the one that sends.
//
// # What an idle tunnel costs
//
// Besides its two descriptors and the kernel's memory for them, an idle tunnel over plain sockets
// on Linux holds
//
//   - some 28 KiB with Handler, Forward and package proxy's default: the handler waits for the
//     tunnel's end, and with it net/http's goroutine, its stack, its buffers and the request;
//   - some 2 KiB with Start and proxy.Options.DetachTunnels, which let the handler return;
//   - some 7 KiB with those two where a goroutine moves each direction (Options.Portable), and
//     more with TLS, whose state is kept.
//
// The handler waits by default because filters around it rely on that: they see the request end
// with the tunnel, so that logs have its bytes and its duration, a limit of concurrent requests
// counts it, and a context that is cancelled around the handler (when a token expires, for
// instance) ends it. Where none of that is needed, or the Registry and the function that Start
// calls at the end do it, let the handler return. An HTTP/2 stream ends with its handler, which
// waits in each case.
package wsupgrade
