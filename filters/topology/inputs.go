package topology

// Inputs is what decisions depend on beside the endpoints. Its methods are called by
// several goroutines at the same time.
type Inputs interface {
	// Labels returns the labels of a node. ok is false if there is no such node.
	Labels(node string) (labels map[string]string, ok bool)
	// Service returns what is to be known of a service. ok is false if there is none.
	Service(namespace, name string) (s Service, ok bool)
	// Synced says whether all nodes and services are known.
	Synced() bool
	// Subscribe has changed called after the labels of a node or a service have changed,
	// with NodeName or ServiceName, and after Synced has become true, with "", until cancel
	// is called.
	Subscribe(changed func(name string)) (cancel func())
}

// Service is what decisions depend on of a service.
type Service struct {
	// Annotations are those that a Policy asks for.
	Annotations map[string]string
	// TrafficDistribution is that of its spec.
	TrafficDistribution string
}

// NodeName and ServiceName name what has changed.
func NodeName(node string) string { return "node/" + node }

// ServiceName names a service that has changed.
func ServiceName(namespace, name string) string { return "service/" + namespace + "/" + name }
