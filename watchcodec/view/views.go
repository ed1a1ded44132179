package view

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/culvert-go/culvert/watchcodec"
)

// Views serves what clients ask for from Views, which it makes when they are asked for and
// ends when they are not any more. It is safe for concurrent use.
type Views struct {
	o    Options
	pass func(http.Handler) http.Handler // what is neither list, watch nor get

	mu     sync.Mutex
	views  map[key]*view
	closed bool
}

// key tells Views apart.
type key struct {
	path, labels, fields string
	accept               string // as it is asked for upstream: the representation
	caller               string
}

// New checks the options.
func New(o Options) (*Views, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if _, err := watchcodec.NewFanout(watchcodec.FanoutOptions{Frames: o.Frames, Bytes: o.FrameBytes, WriteTimeout: o.WriteTimeout}); err != nil {
		return nil, err
	}
	v := &Views{o: o, views: map[key]*view{}}
	var err error
	v.pass, err = watchcodec.NewFilter(watchcodec.FilterOptions{AllowWrites: o.AllowWrites, MaxObject: o.MaxObject, Rewriter: v.rewriter})
	return v, err
}

// Filter answers requests that have a Renderer, with what next answers as an API server
// does. Others pass.
func (vs *Views) Filter(next http.Handler) http.Handler {
	pass := vs.pass(next)
	return watchcodec.WebSocketWatch(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		req, ok := watchcodec.Classify(r)
		if ok && req.Subresource == "" && (req.Verb == "list" || req.Verb == "watch" || req.Verb == "get") {
			if renderer := vs.o.Renderer(r, req); renderer != nil {
				vs.serve(next, w, r, req, renderer)
				return
			}
		}
		pass.ServeHTTP(w, r)
	}))
}

// rewriter is for what is written and answered: a subresource, or what a POST or DELETE
// has done. It is rendered without others of its group.
func (vs *Views) rewriter(r *http.Request, req watchcodec.Request) watchcodec.Rewriter {
	renderer := vs.o.Renderer(r, req)
	if renderer == nil {
		return nil
	}
	return func(o *watchcodec.Object) (bool, error) {
		if !renderer.Synced() {
			return false, errNotSynced
		}
		items := []Item{{Object: o}}
		err := renderer.Render(items, func(string) {})
		return !items[0].Hidden, err
	}
}

// serve answers from a View.
func (vs *Views) serve(next http.Handler, w http.ResponseWriter, r *http.Request, req watchcodec.Request, renderer Renderer) {
	accept, ok := watchcodec.Negotiate(r.Header["Accept"])
	if !ok {
		watchcodec.WriteStatus(w, watchcodec.NewFailure(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable, "this gateway can answer in application/json and application/vnd.kubernetes.protobuf only"))
		return
	}
	v, status := vs.use(next, collection(r, req, accept), renderer)
	if status != nil {
		watchcodec.WriteStatus(w, status)
		return
	}
	defer v.release()
	if !v.await(w, r) {
		return
	}
	v.warn(w.Header())
	switch req.Verb {
	case "get":
		v.get(w, req)
	case "list":
		v.list(w, r, req)
	default:
		v.watch(w, r, req)
	}
}

// collection is the request that fills the View that r is answered from.
func collection(r *http.Request, req watchcodec.Request, accept string) *http.Request {
	out := r.Clone(r.Context())
	query := url.Values{}
	if req.Verb != "get" {
		asked := r.URL.Query()
		for _, name := range []string{"labelSelector", "fieldSelector"} {
			if value := asked.Get(name); value != "" {
				query.Set(name, value)
			}
		}
		if req.Name != "" && query.Get("fieldSelector") == "" { // of the old path /watch/…/NAME
			query.Set("fieldSelector", "metadata.name="+req.Name)
		}
	}
	out.URL = &url.URL{Path: req.CollectionPath(), RawQuery: query.Encode(), Scheme: r.URL.Scheme, Host: r.URL.Host}
	// A list and the watch that follows it are one View's, though clients ask for them
	// with two names.
	out.Header.Set("Accept", strings.ReplaceAll(accept, "as=PartialObjectMetadataList", "as=PartialObjectMetadata"))
	return out
}

// use returns the View for a collection. release gives it back.
func (vs *Views) use(next http.Handler, r *http.Request, renderer Renderer) (*view, *metav1.Status) {
	query := r.URL.Query()
	k := key{r.URL.Path, query.Get("labelSelector"), query.Get("fieldSelector"), r.Header.Get("Accept"), vs.o.Caller(r)}
	vs.mu.Lock()
	defer vs.mu.Unlock()
	v := vs.views[k]
	if v != nil && v.acquire() {
		return v, nil
	}
	switch {
	case vs.closed:
		return nil, watchcodec.NewFailure(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "this gateway is going down")
	case v == nil && len(vs.views) >= vs.o.MaxViews:
		return nil, watchcodec.NewFailure(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "this gateway serves as many views as it may")
	}
	v, err := newView(&vs.o, next, r, renderer)
	if err != nil {
		return nil, watchcodec.NewFailure(http.StatusInternalServerError, metav1.StatusReasonInternalError, err.Error())
	}
	vs.views[k] = v
	v.acquire()
	v.start(func() { vs.forget(k, v) })
	return v, nil
}

func (vs *Views) forget(k key, v *view) {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	if vs.views[k] == v {
		delete(vs.views, k)
	}
}

// Close ends all Views and their clients' watches, and waits for what it has started.
// Later requests are answered with 503.
func (vs *Views) Close() {
	vs.mu.Lock()
	vs.closed = true
	all := make([]*view, 0, len(vs.views))
	for _, v := range vs.views {
		all = append(all, v)
	}
	vs.mu.Unlock()
	for _, v := range all {
		v.cancel()
	}
	for _, v := range all {
		<-v.ended
	}
}

// Stats is what can be told of a View.
type Stats struct {
	// Path is that of the collection, LabelSelector and FieldSelector what is asked of it.
	Path, LabelSelector, FieldSelector string
	// Synced says whether clients are served.
	Synced bool
	// Objects are those that the server has, Bytes what they take, Clients the requests
	// under way.
	Objects, Bytes, Clients int
	// Stale is how long the server has been out of reach, 0 if it is not, and Err why.
	Stale time.Duration
	Err   error
}

// Stats returns those of all Views, in no order.
func (vs *Views) Stats() (all []Stats) {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	for k, v := range vs.views {
		s := v.stats()
		s.Path, s.LabelSelector, s.FieldSelector = k.path, k.labels, k.fields
		all = append(all, s)
	}
	return all
}

// acquire counts a client, unless the View is over.
func (v *view) acquire() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.err != nil {
		return false
	}
	v.clients++
	v.idle.Stop()
	return true
}

func (v *view) release() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.clients--; v.clients == 0 && v.err == nil {
		v.idle.Reset(v.o.Idle)
	}
}

func (v *view) stats() Stats {
	v.mu.Lock()
	defer v.mu.Unlock()
	s := Stats{Synced: v.fanout != nil, Objects: len(v.store.entries), Bytes: v.store.bytes, Clients: v.clients, Err: v.lostErr}
	if !v.lost.IsZero() {
		s.Stale = time.Since(v.lost)
	}
	return s
}

// await waits until there is something to serve, and answers itself if there won't be.
func (v *view) await(w http.ResponseWriter, r *http.Request) bool {
	ctx, cancel := context.WithTimeout(r.Context(), v.o.SyncTimeout)
	defer cancel()
	select {
	case <-v.ready:
		v.mu.Lock()
		err := v.err
		v.mu.Unlock()
		if err != nil {
			refuse(w, err)
		}
		return err == nil
	case <-ctx.Done():
		w.Header().Set("Retry-After", "1")
		watchcodec.WriteStatus(w, watchcodec.NewFailure(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, "this gateway does not know yet what is to be shown; come again"))
		return false
	}
}
