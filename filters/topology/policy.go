package topology

import (
	"encoding/json"
	"slices"
	"strings"
)

// Endpoint is an endpoint of a service.
type Endpoint struct {
	// Address is its first address, and Target the name of the object behind it, a pod for
	// instance. Both are "" unless Question.Explain is true.
	Address, Target string
	// Node is the name of the node that it runs on, and Zone that node's zone; "" means
	// unknown.
	Node, Zone string
	// Ready reports whether it accepts traffic.
	Ready bool
}

// Question is what a Policy decides: which of the endpoints a node sees.
type Question struct {
	// Node is the name of the requesting node.
	Node string
	// Service is the endpoints' service. Known is false if there is none.
	Service Service
	Known   bool
	// Endpoints are all endpoints of the service.
	Endpoints []Endpoint
	// Explain reports whether Decision.Why should be set.
	Explain bool
	// LabelsOf returns the labels of a node, nil if the node is unknown. The policy is
	// called again when the labels of a node have changed that it has called LabelsOf for.
	LabelsOf func(node string) map[string]string
}

// Decision is the decision on one endpoint.
type Decision struct {
	// Keep reports whether the node sees the endpoint.
	Keep bool
	// Why is the reason in a few words. It may be "" unless Question.Explain is true.
	Why string
}

// because returns a Decision. Its reason is concatenated only if q.Explain is true.
func (q *Question) because(keep bool, words ...string) Decision {
	if !q.Explain {
		return Decision{Keep: keep}
	}
	return Decision{keep, strings.Join(words, "")}
}

// Policy decides which endpoints a node sees.
type Policy struct {
	// Name identifies the policy in configurations.
	Name string
	// Annotations are the annotations of a service that Decide reads.
	Annotations []string
	// Spec reports whether Decide reads a service's spec.
	Spec bool
	// Decide returns a Decision for each endpoint, in the order of Question.Endpoints. It
	// must depend on q only, and be safe for concurrent use. Required.
	Decide func(q *Question) []Decision
}

// all returns the same decision for all endpoints.
func all(q *Question, keep bool, why string) []Decision {
	return slices.Repeat([]Decision{{keep, why}}, len(q.Endpoints))
}

// WithFallback returns a policy that decides as p, but keeps all endpoints if p keeps none
// that is ready.
func WithFallback(p Policy) Policy {
	decide := p.Decide
	p.Name += ",fallback=all"
	p.Decide = func(q *Question) []Decision {
		decisions := decide(q)
		for i, d := range decisions {
			if d.Keep && q.Endpoints[i].Ready {
				return decisions
			}
		}
		return all(q, true, "fallback: "+p.Name+" leaves none that is ready")
	}
	return p
}

// Policies returns the policies of this package.
func Policies() []Policy {
	return []Policy{SuperEdge(), Ordered(), OpenYurt(), TrafficDistribution()}
}

// keys parses an annotation that is a JSON array of strings. If why is not "", there is no such list for that
// reason.
func keys(q *Question, annotation string) (list []string, why string) {
	switch value, ok := q.Service.Annotations[annotation]; {
	case !q.Known:
		return nil, "there is no such service"
	case !ok:
		return nil, "the service has no annotation " + annotation
	case json.Unmarshal([]byte(value), &list) != nil:
		return nil, "the annotation " + annotation + " is no JSON array of strings: " + value
	case len(list) == 0:
		return nil, "the annotation " + annotation + " is empty"
	}
	return list, ""
}
