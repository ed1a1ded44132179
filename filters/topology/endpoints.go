package topology

import (
	"github.com/culvert-go/culvert/watchcodec"
)

// The fields of EndpointSlice and Endpoints (k8s.io/api/discovery/v1 and core/v1,
// generated.proto; EndpointSlice v1beta1 has the same numbers).
var (
	endpointsField  = watchcodec.Field{Name: "endpoints", Number: 2}
	portsField      = watchcodec.Field{Name: "ports", Number: 3}
	addressesField  = watchcodec.Field{Name: "addresses", Number: 1}
	conditionsField = watchcodec.Field{Name: "conditions", Number: 2}
	readyField      = watchcodec.Field{Name: "ready", Number: 1}
	targetRefField  = watchcodec.Field{Name: "targetRef", Number: 4}
	targetNameField = watchcodec.Field{Name: "name", Number: 3}
	nodeNameField   = watchcodec.Field{Name: "nodeName", Number: 6}
	zoneField       = watchcodec.Field{Name: "zone", Number: 7}
	// Of v1beta1, and of early versions of v1.
	topologyFields = []watchcodec.Field{{Name: "deprecatedTopology", Number: 5}, {Name: "topology", Number: 5}}

	subsetsField     = watchcodec.Field{Name: "subsets", Number: 2, OmitEmpty: true}
	readyAddresses   = watchcodec.Field{Name: "addresses", Number: 1, OmitEmpty: true}
	unreadyAddresses = watchcodec.Field{Name: "notReadyAddresses", Number: 2, OmitEmpty: true}
	ipField          = watchcodec.Field{Name: "ip", Number: 1}
	addressTarget    = watchcodec.Field{Name: "targetRef", Number: 3}
	addressNode      = watchcodec.Field{Name: "nodeName", Number: 4}
)

// isSlice reports whether o is an EndpointSlice, and not an Endpoints.
func isSlice(o *watchcodec.Object) bool { return string(o.Kind()) == "EndpointSlice" }

// appendEndpoints appends the endpoints of an object, in the order in which
// applyDecisions edits them. It sets Address and Target only if explain is true.
func appendEndpoints(list []Endpoint, o *watchcodec.Object, explain bool) []Endpoint {
	if isSlice(o) {
		for v := range o.Value().Elements(endpointsField) {
			list = append(list, ofSlice(v, explain))
		}
		return list
	}
	for subset := range o.Value().Elements(subsetsField) {
		for v := range subset.Elements(readyAddresses) {
			list = append(list, ofSubset(v, true, explain))
		}
	}
	for subset := range o.Value().Elements(subsetsField) {
		for v := range subset.Elements(unreadyAddresses) {
			list = append(list, ofSubset(v, false, explain))
		}
	}
	return list
}

func ofSlice(v watchcodec.Value, explain bool) Endpoint {
	e := Endpoint{Node: text(v, nodeNameField), Zone: text(v, zoneField), Ready: true}
	if explain {
		e.Target = text(v, targetRefField, targetNameField)
		for address := range v.Elements(addressesField) {
			t, _ := address.Text()
			e.Address = string(t)
			break
		}
	}
	if ready, ok := v.Get(conditionsField, readyField); ok {
		if is, ok := ready.Bool(); ok {
			e.Ready = is // an endpoint without the condition is ready
		}
	}
	for _, topology := range topologyFields {
		if e.Node == "" {
			e.Node = text(v, topology, watchcodec.Key(hostname))
		}
	}
	return e
}

func ofSubset(v watchcodec.Value, ready, explain bool) Endpoint {
	e := Endpoint{Node: text(v, addressNode), Ready: ready}
	if explain {
		e.Address, e.Target = text(v, ipField), text(v, addressTarget, targetNameField)
	}
	return e
}

func text(v watchcodec.Value, path ...watchcodec.Field) string {
	v, ok := v.Get(path...)
	if !ok {
		return ""
	}
	t, _ := v.Text()
	return string(t)
}

// applyDecisions removes the endpoints of an object whose decision is not to keep them. The
// decisions are in the order of appendEndpoints.
func applyDecisions(o *watchcodec.Object, decisions []Decision) error {
	next := func(watchcodec.Value) bool {
		d := decisions[0]
		decisions = decisions[1:]
		return d.Keep
	}
	if isSlice(o) {
		return o.Edit(watchcodec.Keep(next, endpointsField))
	}
	return o.Edit(
		watchcodec.Keep(next, subsetsField, readyAddresses),
		watchcodec.Keep(next, subsetsField, unreadyAddresses),
		watchcodec.Keep(hasAddresses, subsetsField),
	)
}

func hasAddresses(subset watchcodec.Value) bool {
	for _, f := range []watchcodec.Field{readyAddresses, unreadyAddresses} {
		for range subset.Elements(f) {
			return true
		}
	}
	return false
}
