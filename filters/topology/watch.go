package topology

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"sync"
	"time"

	"github.com/culvert-go/culvert/watchcodec"
	"github.com/culvert-go/culvert/watchcodec/source"
)

// WatchOptions configures a Watch.
type WatchOptions struct {
	// Handler responds as an API server does, a proxy to one for instance. Required.
	Handler http.Handler
	// Header holds the credentials of the requests: they need permission to list and watch
	// nodes and services. It may be nil if Handler adds them.
	Header http.Header
	// Policy determines what is watched: only the metadata of services, unless Policy.Spec
	// is true. Required.
	Policy Policy
}

// Watch implements Inputs by watching an API server. It holds the labels of nodes, and those
// properties of services that the Policy reads. It must be closed.
type Watch struct {
	cancel   context.CancelFunc
	running  sync.WaitGroup
	nodes    *table[map[string]string]
	services *table[Service]

	Subscribers

	mu  sync.Mutex
	err error
}

// NewWatch returns a Watch that has begun to watch. It returns an error if a required option is missing.
func NewWatch(o WatchOptions) (*Watch, error) {
	if o.Handler == nil || o.Policy.Decide == nil {
		return nil, errors.New("topology: WatchOptions: Handler and Policy are needed")
	}
	w := &Watch{}
	w.nodes = newTable(w, nodeRow, maps.Equal[map[string]string, map[string]string])
	w.services = newTable(w, o.Policy.serviceRow, sameService)
	nodes, err := o.source("/api/v1/nodes", true, w.nodes)
	if err != nil {
		return nil, err
	}
	services, err := o.source("/api/v1/services", !o.Policy.Spec, w.services)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	w.cancel = cancel
	for _, s := range []*source.Source{nodes, services} {
		w.running.Go(func() { w.run(ctx, s) })
	}
	return w, nil
}

// source returns a Source of a resource, of its metadata alone if metadata is true.
func (o *WatchOptions) source(path string, metadata bool, sink source.Sink) (*source.Source, error) {
	r, err := http.NewRequest(http.MethodGet, path, nil)
	if err != nil {
		return nil, err
	}
	if o.Header != nil {
		r.Header = o.Header.Clone()
	}
	accept := "application/vnd.kubernetes.protobuf, application/json"
	if metadata {
		const as = ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
		accept = "application/vnd.kubernetes.protobuf" + as + ", application/json" + as
	}
	r.Header.Set("Accept", accept)
	return source.New(source.Options{Handler: o.Handler, Request: r, Sink: sink})
}

// run watches until ctx ends. It tries again if the server refuses: the permission may be granted
// meanwhile.
func (w *Watch) run(ctx context.Context, s *source.Source) {
	for {
		err := s.Run(ctx)
		if ctx.Err() != nil {
			return
		}
		w.setErr(err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(refusedWait):
		}
	}
}

// refusedWait is the time until the next attempt after the server has refused.
const refusedWait = 10 * time.Second

func nodeRow(o *watchcodec.Object) (string, map[string]string) {
	return NodeName(string(o.Name())), o.Labels()
}

var (
	specField         = watchcodec.Field{Name: "spec", Number: 2}
	distributionField = watchcodec.Field{Name: "trafficDistribution", Number: 23}
)

// serviceRow returns the properties of a service that the policy reads.
func (p *Policy) serviceRow(o *watchcodec.Object) (string, Service) {
	var s Service
	for _, name := range p.Annotations {
		if value, ok := o.Annotation(name); ok {
			if s.Annotations == nil {
				s.Annotations = map[string]string{}
			}
			s.Annotations[name] = string(value)
		}
	}
	if p.Spec {
		s.TrafficDistribution = text(o.Value(), specField, distributionField)
	}
	return ServiceName(string(o.Namespace()), string(o.Name())), s
}

func sameService(a, b Service) bool {
	return a.TrafficDistribution == b.TrafficDistribution && maps.Equal(a.Annotations, b.Annotations)
}

// Labels implements Inputs.
func (w *Watch) Labels(node string) (map[string]string, bool) { return w.nodes.get(NodeName(node)) }

// Service implements Inputs.
func (w *Watch) Service(namespace, name string) (Service, bool) {
	return w.services.get(ServiceName(namespace, name))
}

// Synced implements Inputs.
func (w *Watch) Synced() bool { return w.nodes.isSynced() && w.services.isSynced() }

// Err returns why the API server can't be watched at the moment, nil if it can.
func (w *Watch) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// Close ends the watches, and waits for their goroutines.
func (w *Watch) Close() {
	w.cancel()
	w.running.Wait()
}

func (w *Watch) setErr(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = err
}

// table is a source.Sink that holds the objects of one resource, by NodeName or ServiceName.
type table[T any] struct {
	w    *Watch
	row  func(*watchcodec.Object) (name string, row T)
	same func(a, b T) bool

	mu     sync.RWMutex
	rows   map[string]T
	seen   map[string]bool // the names set since Replacing; nil outside of a replacement
	synced bool
}

func newTable[T any](w *Watch, row func(*watchcodec.Object) (string, T), same func(a, b T) bool) *table[T] {
	return &table[T]{w: w, row: row, same: same, rows: map[string]T{}}
}

func (t *table[T]) get(name string) (row T, ok bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	row, ok = t.rows[name]
	return row, ok
}

func (t *table[T]) isSynced() bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.synced
}

// Replacing implements source.Sink.
func (t *table[T]) Replacing() { t.seen = map[string]bool{} }

// Set implements source.Sink. It reports a change only if a property that is held has changed.
func (t *table[T]) Set(o *watchcodec.Object) error {
	name, row := t.row(o)
	t.mu.Lock()
	if t.seen != nil {
		t.seen[name] = true
	}
	before, known := t.rows[name]
	t.rows[name] = row
	t.mu.Unlock()
	if !known || !t.same(before, row) {
		t.w.Changed(name)
	}
	return nil
}

// Delete implements source.Sink.
func (t *table[T]) Delete(o *watchcodec.Object) error {
	name, _ := t.row(o)
	t.remove(name)
	return nil
}

func (t *table[T]) remove(name string) {
	t.mu.Lock()
	delete(t.rows, name)
	t.mu.Unlock()
	t.w.Changed(name)
}

// Replaced implements source.Sink.
func (t *table[T]) Replaced(source.Collection) {
	t.mu.Lock()
	var gone []string
	for name := range t.rows {
		if !t.seen[name] {
			gone = append(gone, name)
		}
	}
	t.seen, t.synced = nil, true
	t.mu.Unlock()
	for _, name := range gone {
		t.remove(name)
	}
	t.w.Changed("")
}

// Lost implements source.Sink.
func (t *table[T]) Lost(err error) { t.w.setErr(err) }

// Found implements source.Sink.
func (t *table[T]) Found() { t.w.setErr(nil) }
