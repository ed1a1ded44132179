// Package culvert is the front door of an embeddable reverse proxy for Go HTTP
// servers. It holds no code: import the rooms that you need.
//
//   - proxy forwards a request to one of the targets of an upstream.
//   - wsupgrade forwards WebSocket and other upgrades and tunnels their bytes.
//   - filters holds Filter, Chain and the filters that know about proxying;
//     filters/filtertest tells whether a filter keeps what proxying needs.
//   - cachectl decides what an answer says about caching.
//   - watchcodec cuts and writes Kubernetes watch streams, event by event.
//
// Everything is an http.Handler or a func(http.Handler) http.Handler, so it
// fits into any mux, and each package is usable without the others.
package culvert
