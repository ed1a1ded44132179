// Package topology shows a node only the endpoints that it is to use: those of its unit,
// its zone, itself. It stands between kube-proxy and the API server, and removes
// endpoints from EndpointSlices and Endpoints, by policies that a service names in an
// annotation or a field of its spec. Objects whose endpoints are all removed stay, empty:
// without them the rules of before would stay in force (openyurt#1028).
//
// Which endpoints a node sees depends on its labels, on those of other nodes, and on the
// service, so that clients are served from a view (watchcodec/view): whichever of them
// changes, they are told.
package topology
