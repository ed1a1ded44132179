package topology

import (
	"encoding/json"
	"slices"
	"strings"
)

// Endpoint is one that a service has.
type Endpoint struct {
	// Address is its first one, Target what it stands for, a pod's name for instance.
	// They are known where Question.Explain is set.
	Address, Target string
	// Node is the name of the one that it runs on, and Zone where that is; "" is unknown.
	Node, Zone string
	// Ready says whether it takes traffic.
	Ready bool
}

// Question is what a Policy decides.
type Question struct {
	// Node is the name of the node that asks.
	Node string
	// Service is the endpoints' service; Known is false if there is none.
	Service Service
	Known   bool
	// Endpoints are all that the service has.
	Endpoints []Endpoint
	// Explain says that Decision.Why is asked for.
	Explain bool
	// LabelsOf returns the labels of a node, nil of an unknown one. When they change the
	// question is put again.
	LabelsOf func(node string) map[string]string
}

// Decision is what becomes of an endpoint.
type Decision struct {
	Keep bool
	// Why says it in a few words, where Question.Explain asks for that.
	Why string
}

// because is a Decision with its reason, which is put together where it is asked for.
func (q *Question) because(keep bool, words ...string) Decision {
	if !q.Explain {
		return Decision{Keep: keep}
	}
	return Decision{keep, strings.Join(words, "")}
}

// Policy decides which endpoints a node sees.
type Policy struct {
	// Name is what it is chosen by in configurations.
	Name string
	// Annotations are those of a service that it looks at.
	Annotations []string
	// Spec says that it looks at a service's spec.
	Spec bool
	// Decide returns a Decision for each endpoint. It must depend on q only.
	Decide func(q *Question) []Decision
}

// all decides the same for all.
func all(q *Question, keep bool, why string) []Decision {
	return slices.Repeat([]Decision{{keep, why}}, len(q.Endpoints))
}

// WithFallback keeps all endpoints where p keeps none that is ready.
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

// Policies are those that there are, by their names.
func Policies() []Policy {
	return []Policy{SuperEdge(), Ordered(), OpenYurt(), TrafficDistribution()}
}

// keys reads an annotation that is a JSON array of strings.
func keys(q *Question, annotation string) (list []string, why string) {
	switch value, ok := q.Service.Annotations[annotation]; {
	case !q.Known:
		return nil, "no such service: nothing is asked for"
	case !ok:
		return nil, "the service has no annotation " + annotation
	case json.Unmarshal([]byte(value), &list) != nil:
		return nil, "the annotation " + annotation + " is no JSON array of strings: " + value
	case len(list) == 0:
		return nil, "the annotation " + annotation + " is empty"
	}
	return list, ""
}
