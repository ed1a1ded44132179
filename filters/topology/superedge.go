package topology

import "strings"

// superEdgeKeys is the annotation of the services that SuperEdge's ServiceGrid makes
// (github.com/superedge/superedge, pkg/application-grid-controller).
const superEdgeKeys = "topologyKeys"

// SuperEdge returns the policy of SuperEdge's application-grid-wrapper. It reads the
// annotation topologyKeys, a JSON array of labels, and keeps an endpoint if any of the labels
// has the same value on the endpoint's node and on the requesting node. It keeps no endpoint
// if none matches, and none without a node or on an unknown one. It keeps none at all if the
// requesting node is unknown, and all if the annotation is missing, empty or malformed.
func SuperEdge() Policy {
	return Policy{Name: "superedge", Annotations: []string{superEdgeKeys}, Decide: func(q *Question) []Decision {
		keys, why := keys(q, superEdgeKeys)
		if why != "" {
			return all(q, true, why)
		}
		if q.LabelsOf(q.Node) == nil {
			return all(q, false, "this node, "+q.Node+", is unknown")
		}
		decisions := make([]Decision, len(q.Endpoints))
		for i, e := range q.Endpoints {
			decisions[i] = sharesAny(q, e, keys)
		}
		return decisions
	}}
}

// sharesAny decides on an endpoint by whether any of the labels has the same value on its node and on the
// requesting node.
func sharesAny(q *Question, e Endpoint, keys []string) Decision {
	if e.Node == "" {
		return q.because(false, "it is on no node")
	}
	own, labels := q.LabelsOf(q.Node), q.LabelsOf(e.Node)
	if labels == nil {
		return q.because(false, "its node, ", e.Node, ", is unknown")
	}
	for _, key := range keys {
		if value, ok := own[key]; ok && labels[key] == value && hasLabel(labels, key) {
			return q.because(true, key, "=", value, " here and on ", e.Node)
		}
	}
	if !q.Explain {
		return Decision{Keep: false}
	}
	var why []string
	for _, key := range keys {
		why = append(why, key+" is "+labelText(own, key)+" here and "+labelText(labels, key)+" on "+e.Node)
	}
	return Decision{false, strings.Join(why, ", ")}
}

func hasLabel(labels map[string]string, key string) bool {
	_, ok := labels[key]
	return ok
}

// labelText returns the value of a label, "not set" if there is none.
func labelText(labels map[string]string, key string) string {
	if value, ok := labels[key]; ok {
		return value
	}
	return "not set"
}
