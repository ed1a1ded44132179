package topology

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/culvert-go/culvert/watchcodec"
	"github.com/culvert-go/culvert/watchcodec/view"
)

// Options configures a Filter.
type Options struct {
	// Node is the name of the node that the endpoints are shown to. Required.
	Node string
	// Inputs has the labels of nodes and the services. Required. Watch implements it.
	Inputs Inputs
	// Policy decides which endpoints are shown. Required.
	Policy Policy
	// View configures how clients are served. Its Renderer is ignored.
	View view.Options
	// Offline serves lists and watches of Services and Nodes from views too, unchanged, so
	// that a kube-proxy that starts while the API server is unreachable receives all that
	// it needs. These objects have the view's resourceVersions, which can't be used for
	// writing.
	Offline bool
}

// Filter restricts endpoints by topology. It passes requests for other resources on
// unchanged. It is safe for concurrent use, and must be closed.
type Filter struct {
	o     Options
	views *view.Views
}

// New returns a Filter with the options. It returns an error if one is missing or invalid.
func New(o Options) (*Filter, error) {
	switch {
	case o.Node == "":
		return nil, errors.New("topology: Options: the name of the node is missing")
	case o.Inputs == nil || o.Policy.Decide == nil:
		return nil, errors.New("topology: Options: Inputs and a Policy are needed")
	}
	f := &Filter{o: o}
	o.View.Renderer = f.renderer
	var err error
	f.views, err = view.New(o.View)
	return f, err
}

// renderer returns the Renderer for the requested resource, nil if the request is passed on.
func (f *Filter) renderer(_ *http.Request, req watchcodec.Request) view.Renderer {
	reads := req.Verb == "list" || req.Verb == "watch"
	switch {
	case req.APIGroup == "discovery.k8s.io" && req.Resource == "endpointslices", req.APIGroup == "" && req.Resource == "endpoints":
		return renderer{f}
	case f.o.Offline && reads && req.APIGroup == "" && (req.Resource == "services" || req.Resource == "nodes"):
		return unchanged{}
	}
	return nil
}

// unchanged is a view.Renderer that does not change objects.
type unchanged struct{}

func (unchanged) Synced() bool                           { return true }
func (unchanged) Group(*watchcodec.Object) string        { return "" }
func (unchanged) Render([]view.Item, func(string)) error { return nil }
func (unchanged) Subscribe(func(string)) func()          { return func() {} }

// Filter returns a handler that restricts the endpoints in the responses of next, which must
// respond as an API server does.
func (f *Filter) Filter(next http.Handler) http.Handler { return f.views.Filter(next) }

// Stats returns the statistics of the views that clients are served from.
func (f *Filter) Stats() []view.Stats { return f.views.Stats() }

// Close ends all watches, and waits for the goroutines of f.
func (f *Filter) Close() { f.views.Close() }

// serviceLabel is the label with the name of a slice's service. The name of the slice can't be
// used: it has the service's name truncated if that is long.
const serviceLabel = "kubernetes.io/service-name"

// serviceOf returns the name of the service whose endpoints o has, "" if it names none.
func serviceOf(o *watchcodec.Object) string {
	if isSlice(o) {
		name, _ := o.Label(serviceLabel)
		return string(name)
	}
	return string(o.Name())
}

// Explained is an endpoint of an object with the decision on it.
type Explained struct {
	// Object is the name of the EndpointSlice or the Endpoints that has the endpoint.
	Object string
	// Endpoint is the endpoint as the policy is called with it.
	Endpoint Endpoint
	// Decision is the policy's, with Why set.
	Decision Decision
}

// Explain returns the decision on each endpoint of a service, with its reason. objects must
// be all EndpointSlices of the service, or its Endpoints. It returns nil if objects is empty.
func (f *Filter) Explain(objects []*watchcodec.Object) (all []Explained) {
	if len(objects) == 0 {
		return nil
	}
	endpoints, counts := collect(objects, true)
	decisions := f.decide(objects[0], endpoints, true, func(string) {})
	for i, o := range objects {
		for range counts[i] {
			all = append(all, Explained{string(o.Name()), endpoints[0], decisions[0]})
			endpoints, decisions = endpoints[1:], decisions[1:]
		}
	}
	return all
}

// collect returns the endpoints of all objects, and their number in each object.
func collect(objects []*watchcodec.Object, explain bool) (endpoints []Endpoint, counts []int) {
	for _, o := range objects {
		before := len(endpoints)
		endpoints = appendEndpoints(endpoints, o, explain)
		counts = append(counts, len(endpoints)-before)
	}
	return endpoints, counts
}

// decide returns the policy's decisions on the endpoints of o's service. It calls depends with
// the name of each node and service that they depend on.
func (f *Filter) decide(o *watchcodec.Object, endpoints []Endpoint, explain bool, depends func(string)) []Decision {
	var own map[string]string
	cached := false
	q := &Question{Node: f.o.Node, Endpoints: endpoints, Explain: explain, LabelsOf: func(node string) map[string]string {
		if node != f.o.Node {
			return f.labels(node, depends)
		}
		if !cached { // policies read these labels for each endpoint
			own, cached = f.labels(node, depends), true
		}
		return own
	}}
	if name := serviceOf(o); name != "" {
		depends(ServiceName(string(o.Namespace()), name))
		q.Service, q.Known = f.o.Inputs.Service(string(o.Namespace()), name)
	}
	return f.o.Policy.Decide(q)
}

// labels returns the labels of a node, nil if the node is unknown.
func (f *Filter) labels(node string, depends func(string)) map[string]string {
	depends(NodeName(node))
	labels, ok := f.o.Inputs.Labels(node)
	switch {
	case !ok:
		return nil
	case labels == nil:
		return map[string]string{} // the node is known, and has no labels
	}
	return labels
}

// renderer is the view.Renderer of EndpointSlices and Endpoints.
type renderer struct{ f *Filter }

func (r renderer) Synced() bool { return r.f.o.Inputs.Synced() }

func (r renderer) Subscribe(changed func(string)) func() { return r.f.o.Inputs.Subscribe(changed) }

// Group returns the same group for all slices of a service: which endpoints of one slice are
// kept may depend on the others.
func (r renderer) Group(o *watchcodec.Object) string {
	if name := serviceOf(o); isSlice(o) && name != "" {
		return string(o.Namespace()) + "/" + name
	}
	return ""
}

func (r renderer) Render(items []view.Item, depends func(string)) error {
	objects := make([]*watchcodec.Object, len(items))
	for i := range items {
		objects[i] = items[i].Object
		switch kind := string(objects[i].Kind()); kind {
		case "EndpointSlice", "Endpoints", "PartialObjectMetadata": // PartialObjectMetadata has no endpoints
		default:
			return fmt.Errorf("topology: a %q in the place of endpoints", kind)
		}
	}
	endpoints, counts := collect(objects, false)
	decisions := r.f.decide(objects[0], endpoints, false, depends)
	if len(decisions) != len(endpoints) {
		return errors.New("topology: the policy " + r.f.o.Policy.Name + " has not decided on all endpoints")
	}
	for i, o := range objects {
		own := decisions[:counts[i]]
		decisions = decisions[counts[i]:]
		done, err := setLocalEndpoint(o)
		if err == nil && !done && dropsAny(own) {
			err = applyDecisions(o, own)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func dropsAny(decisions []Decision) bool {
	for _, d := range decisions {
		if !d.Keep {
			return true
		}
	}
	return false
}
