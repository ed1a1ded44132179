package topology

// zoneLabel is the label with a node's zone.
const zoneLabel = "topology.kubernetes.io/zone"

// TrafficDistribution returns a policy that enforces what is a preference in a service's
// spec.trafficDistribution (k8s.io/api/core/v1). With PreferSameZone and PreferClose it keeps
// only the endpoints in the zone of the requesting node, with PreferSameNode only those on
// it. With another value or none it keeps all. WithFallback makes it a preference again.
func TrafficDistribution() Policy {
	return Policy{Name: "trafficdistribution", Spec: true, Decide: func(q *Question) []Decision {
		switch q.Service.TrafficDistribution {
		case "PreferSameNode":
			return onNode(q)
		case "PreferSameZone", "PreferClose":
			return inZone(q)
		case "":
			return all(q, true, "the service has no trafficDistribution")
		}
		return all(q, true, "nothing is known of the trafficDistribution "+q.Service.TrafficDistribution)
	}}
}

func inZone(q *Question) []Decision {
	here, ok := q.LabelsOf(q.Node)[zoneLabel]
	if !ok {
		return all(q, false, "this node, "+q.Node+", is in no zone")
	}
	decisions := make([]Decision, len(q.Endpoints))
	for i, e := range q.Endpoints {
		zone := e.Zone
		if zone == "" && e.Node != "" {
			zone = q.LabelsOf(e.Node)[zoneLabel]
		}
		switch zone {
		case "":
			decisions[i] = q.because(false, "its zone is unknown")
		case here:
			decisions[i] = q.because(true, "it is in this zone, ", here)
		default:
			decisions[i] = q.because(false, "it is in ", zone, ", this node in ", here)
		}
	}
	return decisions
}
