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
	// Handler answers as an API server does, a proxy to one for instance. Required.
	Handler http.Handler
	// Header has the credentials: list and watch of nodes and services are needed. It may
	// be nil where the Handler adds them.
	Header http.Header
	// Policy says what is looked at: of services no more than the metadata, unless it
	// needs their spec. Required.
	Policy Policy
}

// Watch is Inputs that are watched at an API server. It keeps the labels of nodes, and of
// services what the Policy looks at.
type Watch struct {
	cancel   context.CancelFunc
	running  sync.WaitGroup
	nodes    *table[map[string]string]
	services *table[Service]

	Subscribers

	mu  sync.Mutex
	err error
}

// NewWatch checks the options and begins to watch.
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

// source watches a resource, as metadata if that is all that is looked at.
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

// run watches until the context ends, also where the server refuses: somebody may give the
// right to.
func (w *Watch) run(ctx context.Context, s *source.Source) {
	for {
		err := s.Run(ctx)
		if ctx.Err() != nil {
			return
		}
		w.failed(err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(refusedWait):
		}
	}
}

// refusedWait is the time between two attempts where the server has refused.
const refusedWait = 10 * time.Second

func nodeRow(o *watchcodec.Object) (string, map[string]string) {
	return NodeName(string(o.Name())), o.Labels()
}

var (
	specField         = watchcodec.Field{Name: "spec", Number: 2}
	distributionField = watchcodec.Field{Name: "trafficDistribution", Number: 23}
)

// serviceRow reads what the policy looks at.
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

// Labels serves Inputs.
func (w *Watch) Labels(node string) (map[string]string, bool) { return w.nodes.get(NodeName(node)) }

// Service serves Inputs.
func (w *Watch) Service(namespace, name string) (Service, bool) {
	return w.services.get(ServiceName(namespace, name))
}

// Synced serves Inputs.
func (w *Watch) Synced() bool { return w.nodes.isSynced() && w.services.isSynced() }

// Err says why the API server can't be watched at the moment, nil if it can.
func (w *Watch) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// Close ends the watches.
func (w *Watch) Close() {
	w.cancel()
	w.running.Wait()
}

func (w *Watch) failed(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = err
}

// table is what is known of one resource, by the names of changes. It is a source.Sink.
type table[T any] struct {
	w    *Watch
	row  func(*watchcodec.Object) (name string, row T)
	same func(a, b T) bool

	mu     sync.RWMutex
	rows   map[string]T
	seen   map[string]bool // since Replacing
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

// Replacing serves source.Sink.
func (t *table[T]) Replacing() { t.seen = map[string]bool{} }

// Set serves source.Sink. A change that nobody looks at is none.
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

// Delete serves source.Sink.
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

// Replaced serves source.Sink.
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

// Lost serves source.Sink.
func (t *table[T]) Lost(err error) { t.w.failed(err) }

// Found serves source.Sink.
func (t *table[T]) Found() { t.w.failed(nil) }
