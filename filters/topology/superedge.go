package topology

import "strings"

// superEdgeKeys is the annotation that SuperEdge's ServiceGrid gives to the services it
// makes (github.com/superedge/superedge, pkg/application-grid-controller).
const superEdgeKeys = "topologyKeys"

// SuperEdge is the policy of SuperEdge's application-grid-wrapper: the annotation
// topologyKeys is a JSON array of labels, and an endpoint is kept if any of them has the
// same value on its node and on the one that asks. Where none matches, no endpoint is
// kept: the loop is closed. Endpoints without a node or of an unknown one are dropped,
// all are where the asking node is unknown, and none where there is no such annotation or
// it can't be read.
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

func sharesAny(q *Question, e Endpoint, keys []string) Decision {
	if e.Node == "" {
		return q.because(false, "it is on no node")
	}
	own, labels := q.LabelsOf(q.Node), q.LabelsOf(e.Node)
	if labels == nil {
		return q.because(false, "its node, ", e.Node, ", is unknown")
	}
	for _, key := range keys {
		if value, ok := own[key]; ok && labels[key] == value && has(labels, key) {
			return q.because(true, key, "=", value, " here and on ", e.Node)
		}
	}
	if !q.Explain {
		return Decision{Keep: false}
	}
	var why []string
	for _, key := range keys {
		why = append(why, key+" is "+shown(own, key)+" here and "+shown(labels, key)+" on "+e.Node)
	}
	return Decision{false, strings.Join(why, ", ")}
}

func has(labels map[string]string, key string) bool {
	_, ok := labels[key]
	return ok
}

// shown is a label's value in words.
func shown(labels map[string]string, key string) string {
	if value, ok := labels[key]; ok {
		return value
	}
	return "not set"
}
