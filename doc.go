// Package culvert is the root of an embeddable reverse proxy for Go HTTP
// servers. It holds the types that all packages share: Error and ErrorKind, Result and
// Attempt, ResponseStats, and Filter. Import the packages that you need:
//
//   - proxy forwards a request to one of the targets (backend servers) of an upstream group.
//   - upstream selects a target for each request: by balance, health and load.
//   - server serves HTTP as net/http's server does, for less.
//   - wsupgrade forwards WebSocket and other upgrades and tunnels their bytes.
//     wsupgrade/extendedconnect enables WebSockets over HTTP/2 in net/http's server,
//     and wsupgrade/wstest tests a gateway for WebSockets in memory.
//   - filters holds Filter, Chain and the filters that know about proxying.
//     filters/filtertest checks that a filter preserves what proxying needs, and
//     filters/topology restricts the Kubernetes endpoints that a node sees.
//   - statuspage shows groups, targets, health, rates and tunnels to operators.
//   - cachectl sets the header fields of a response that control caching.
//   - watchcodec parses, edits and writes Kubernetes lists and watch streams, event by event.
//     watchcodec/source follows a resource of an API server, watchcodec/view serves
//     objects whose content depends on other state, and watchcodec/watchtest is an
//     API server for tests. watchcodec/remotecommand parses and writes the messages of
//     exec, attach and port-forward over WebSocket.
//
// The module github.com/culvert-go/culvert/nginx runs an nginx.conf over these packages.
//
// # Times in options
//
// The times in the options of all packages have one meaning:
//
//   - 0 is the default, which the comment of the field names. For some that is no bound.
//   - A negative value is no bound for each time that bounds something, also where the default is a bound. A
//     negative PingInterval sends no pings, a negative BookmarkEvery no bookmarks.
//   - Other times, the interval of health checks or a Retry-After for instance, can't be negative:
//     the constructor returns an error.
//
// The exception is proxy.Options.FlushInterval, which bounds nothing: it is as in
// net/http/httputil.
//
// # Handlers and filters
//
// Every handler is an http.Handler and every filter a func(http.Handler) http.Handler, so
// they fit into any mux, and each package is usable without the others.
package culvert
