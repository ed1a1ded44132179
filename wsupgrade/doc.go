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
// Tunnels between plain sockets are moved by a few loops on Linux, where an idle one
// costs two descriptors and some 2 KiB; with TLS, over HTTP/2, with an Observer and on
// other systems by a goroutine for each direction. Both do the same: what either side
// sent early is delivered, the end of one direction is passed on while the other goes
// on, and a side that takes nothing holds up the one that sends.
package wsupgrade
