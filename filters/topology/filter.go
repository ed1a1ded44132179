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
	// Node is the name of the node whose view it is. Required.
	Node string
	// Inputs is what decisions depend on. Required; see Watch for one.
	Inputs Inputs
	// Policy decides. Required.
	Policy Policy
	// View configures how clients are served; its Renderer is not looked at.
	View view.Options
	// Offline serves lists and watches of Services and Nodes from views too, unchanged, so
	// that a kube-proxy that starts while the API server is out of reach finds all that
	// it needs. They then have resourceVersions of the view, which are none for writing.
	Offline bool
}

// Filter shows endpoints by topology. Requests for other resources pass.
type Filter struct {
	o     Options
	views *view.Views
}

// New checks the options.
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

// renderer is who renders what a request asks for.
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

// unchanged shows objects as they are.
type unchanged struct{}

func (unchanged) Synced() bool                           { return true }
func (unchanged) Group(*watchcodec.Object) string        { return "" }
func (unchanged) Render([]view.Item, func(string)) error { return nil }
func (unchanged) Subscribe(func(string)) func()          { return func() {} }

// Filter stands in front of next, which answers as an API server does.
func (f *Filter) Filter(next http.Handler) http.Handler { return f.views.Filter(next) }

// Stats returns those of the Views that clients are served from.
func (f *Filter) Stats() []view.Stats { return f.views.Stats() }

// Close ends all watches, and waits for what was started.
func (f *Filter) Close() { f.views.Close() }

// serviceLabel says which service a slice belongs to. Its name does not: it is cut where
// it is long.
const serviceLabel = "kubernetes.io/service-name"

// serviceOf is the name of the service that an object has the endpoints of.
func serviceOf(o *watchcodec.Object) string {
	if isSlice(o) {
		name, _ := o.Label(serviceLabel)
		return string(name)
	}
	return string(o.Name())
}

// Explained is an endpoint of an object, and what becomes of it.
type Explained struct {
	// Object is the name of the slice or the Endpoints that it is in.
	Object   string
	Endpoint Endpoint
	Decision Decision
}

// Explain tells what becomes of the endpoints of a service, of which objects are all
// slices, or the Endpoints.
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

// collect returns the endpoints of objects, and how many each has.
func collect(objects []*watchcodec.Object, explain bool) (endpoints []Endpoint, counts []int) {
	for _, o := range objects {
		before := len(endpoints)
		endpoints = appendEndpoints(endpoints, o, explain)
		counts = append(counts, len(endpoints)-before)
	}
	return endpoints, counts
}

// decide puts the question of the service that o belongs to.
func (f *Filter) decide(o *watchcodec.Object, endpoints []Endpoint, explain bool, depends func(string)) []Decision {
	var own map[string]string
	asked := false
	q := &Question{Node: f.o.Node, Endpoints: endpoints, Explain: explain, LabelsOf: func(node string) map[string]string {
		if node != f.o.Node {
			return f.labels(node, depends)
		}
		if !asked { // for each endpoint again
			own, asked = f.labels(node, depends), true
		}
		return own
	}}
	if name := serviceOf(o); name != "" {
		depends(ServiceName(string(o.Namespace()), name))
		q.Service, q.Known = f.o.Inputs.Service(string(o.Namespace()), name)
	}
	return f.o.Policy.Decide(q)
}

// labels are those of a node, nil of one that is unknown.
func (f *Filter) labels(node string, depends func(string)) map[string]string {
	depends(NodeName(node))
	labels, ok := f.o.Inputs.Labels(node)
	switch {
	case !ok:
		return nil
	case labels == nil:
		return map[string]string{} // it has none, and is known
	}
	return labels
}

// renderer serves the view.
type renderer struct{ f *Filter }

func (r renderer) Synced() bool { return r.f.o.Inputs.Synced() }

func (r renderer) Subscribe(changed func(string)) func() { return r.f.o.Inputs.Subscribe(changed) }

// Group has the slices of a service together: which of one are kept may depend on the
// others.
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
		case "EndpointSlice", "Endpoints", "PartialObjectMetadata": // the last has no endpoints
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
		done, err := local(o)
		if err == nil && !done && dropsAny(own) {
			err = keep(o, own)
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
