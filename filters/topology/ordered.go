package topology

// Ordered returns the policy that Kubernetes had up to 1.21 in a service's spec.topologyKeys
// (KEP-536). It reads the annotation topologyKeys, a JSON array of labels, and uses the
// first label that has the same value on the requesting node and on the node of a ready
// endpoint: it keeps the endpoints on nodes with that value. "*" keeps all endpoints. It
// keeps none if no label matches, and all if the annotation is missing, empty or
// malformed.
func Ordered() Policy {
	return Policy{Name: "ordered", Annotations: []string{superEdgeKeys}, Decide: func(q *Question) []Decision {
		keys, why := keys(q, superEdgeKeys)
		if why != "" {
			return all(q, true, why)
		}
		if q.LabelsOf(q.Node) == nil {
			return all(q, false, "this node, "+q.Node+", is unknown")
		}
		for _, key := range keys {
			if key == "*" {
				return all(q, true, "no key before * matches")
			}
			if decisions, ready := decideByLabel(q, key); ready {
				return decisions
			}
		}
		return all(q, false, "no key matches")
	}}
}

// decideByLabel keeps the endpoints on nodes with the same value of a label. ready reports whether it
// keeps an endpoint that is ready.
func decideByLabel(q *Question, key string) (decisions []Decision, ready bool) {
	for _, e := range q.Endpoints {
		d := sharesAny(q, e, []string{key})
		decisions = append(decisions, d)
		ready = ready || d.Keep && e.Ready
	}
	return decisions, ready
}
