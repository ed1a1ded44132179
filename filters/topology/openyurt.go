package topology

import "strings"

// The annotation of OpenYurt's service topology, and the label of its node pools
// (github.com/openyurtio/openyurt, pkg/yurthub/filter/servicetopology and pkg/apis/apps).
const (
	openYurtKeys = "openyurt.io/topologyKeys"
	nodePool     = "apps.openyurt.io/nodepool"
	hostname     = "kubernetes.io/hostname"
)

// OpenYurt returns the policy of OpenYurt's yurthub, which reads the annotation
// openyurt.io/topologyKeys. With kubernetes.io/hostname it keeps the endpoints on the
// requesting node. With openyurt.io/nodepool, or its other name kubernetes.io/zone, it
// keeps those in the node's pool; a node in no pool sees only the endpoints on itself. With
// another value or none it keeps all.
func OpenYurt() Policy {
	return Policy{Name: "openyurt", Annotations: []string{openYurtKeys}, Decide: func(q *Question) []Decision {
		value, ok := q.Service.Annotations[openYurtKeys]
		switch strings.TrimSpace(value) {
		case hostname:
			return onNode(q)
		case "openyurt.io/nodepool", "kubernetes.io/zone":
			return inPool(q)
		}
		if !ok {
			return all(q, true, "the service has no annotation "+openYurtKeys)
		}
		return all(q, true, "the annotation "+openYurtKeys+" is no topology: "+value)
	}}
}

func onNode(q *Question) []Decision {
	decisions := make([]Decision, len(q.Endpoints))
	for i, e := range q.Endpoints {
		switch {
		case e.Node == "":
			decisions[i] = q.because(false, "it is on no node")
		case e.Node == q.Node:
			decisions[i] = q.because(true, "it is on this node")
		default:
			decisions[i] = q.because(false, "it is on ", e.Node, ", not here")
		}
	}
	return decisions
}

func inPool(q *Question) []Decision {
	decisions := onNode(q)
	for i, e := range q.Endpoints {
		if e.Node != "" && e.Node != q.Node {
			decisions[i] = sharesAny(q, e, []string{nodePool})
		}
	}
	return decisions
}
