// Package wsupgrade forwards HTTP/1.1 upgrades (WebSocket and whatever else is
// allowed by name) to a target and tunnels the bytes of the two sides, from
// the very first one.
//
// An upgrade goes through the same ServeHTTP as every other request; there is
// no second way in that a first request would have to open. The handshake is
// checked, the target is dialled by this package, its 101 is validated, and only
// then is the client's connection taken over. Any other answer is relayed
// as it is, and whatever the client sent after its handshake stays its next
// request. Every refusal is answered.
package wsupgrade
