package topology

// Ordered is the policy that Kubernetes had up to 1.21 in a service's spec.topologyKeys
// (KEP-536), read from the annotation topologyKeys: the first of the labels counts that
// has the same value here and on the node of an endpoint that is ready; "*" stands for
// all endpoints. Where none matches, no endpoint is kept. All are kept where there is no
// such annotation or it can't be read.
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
			if decisions, ready := sharing(q, key); ready {
				return decisions
			}
		}
		return all(q, false, "no key matches")
	}}
}

// sharing decides by one label, and says whether that keeps an endpoint that is ready.
func sharing(q *Question, key string) (decisions []Decision, ready bool) {
	for _, e := range q.Endpoints {
		d := sharesAny(q, e, []string{key})
		decisions = append(decisions, d)
		ready = ready || d.Keep && e.Ready
	}
	return decisions, ready
}
