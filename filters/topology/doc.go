// Package topology restricts the endpoints that a node sees to those that it should use:
// those of its unit, of its zone, or on the node itself. Its filter runs between kube-proxy
// and the API server, and removes endpoints from EndpointSlices and Endpoints, by a policy
// that a service chooses in an annotation or a field of its spec. An object whose endpoints
// are all removed is kept, without endpoints: if it were removed, kube-proxy would keep its
// old rules (openyurt#1028).
//
// The endpoints that a node sees depend on its labels, on those of other nodes, and on the
// service. So clients are served from a view (watchcodec/view), and receive an event when
// one of these changes.
package topology
