package topology

// Inputs is what decisions depend on besides the endpoints. Its methods must be safe for
// concurrent use.
type Inputs interface {
	// Labels returns the labels of a node. ok is false if there is no such node.
	Labels(node string) (labels map[string]string, ok bool)
	// Service returns a service. ok is false if there is none.
	Service(namespace, name string) (s Service, ok bool)
	// Synced reports whether all nodes and services are known.
	Synced() bool
	// Subscribe registers changed until cancel is called. It is called with NodeName after
	// the labels of a node have changed, with ServiceName after a service has changed,
	// and with "" after Synced has become true.
	Subscribe(changed func(name string)) (cancel func())
}

// Service holds the properties of a service that decisions depend on.
type Service struct {
	// Annotations are the annotations in Policy.Annotations.
	Annotations map[string]string
	// TrafficDistribution is the field trafficDistribution of the spec, "" if it has none.
	TrafficDistribution string
}

// NodeName returns the name of a node for Inputs.Subscribe.
func NodeName(node string) string { return "node/" + node }

// ServiceName returns the name of a service for Inputs.Subscribe.
func ServiceName(namespace, name string) string { return "service/" + namespace + "/" + name }
