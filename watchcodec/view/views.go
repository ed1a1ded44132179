package view

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/culvert-go/culvert/internal/client"
	"github.com/culvert-go/culvert/internal/clientbody"
	"github.com/culvert-go/culvert/internal/deadline"
	"github.com/culvert-go/culvert/watchcodec"
	"github.com/culvert-go/culvert/watchcodec/source"
)

// Views serves requests from Views, which it creates on the first request for them and ends when
// they are no longer used. It is safe for concurrent use by multiple goroutines.
type Views struct {
	o    Options
	pass func(http.Handler) http.Handler // for requests other than lists, watches and gets

	mu      sync.Mutex
	views   map[key]*view
	made    uint64         // the number of Views created so far
	running sync.WaitGroup // counts Views, also those that are no longer in views
	closed  bool
}

// key identifies a View.
type key struct {
	path, labels, fields string
	accept               string // the Accept field that is sent upstream
	caller               string
}

// New checks the options and returns a Views. Close ends it.
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

// Filter returns a handler that responds to requests with a Renderer, out of the responses of next,
// which responds as an API server does. Other requests pass.
func (vs *Views) Filter(next http.Handler) http.Handler {
	pass := vs.pass(next)
	return watchcodec.WebSocketWatch(vs.o.maxEvent())(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		req, ok := watchcodec.Classify(r)
		if ok && req.Subresource == "" && (req.Verb == "list" || req.Verb == "watch" || req.Verb == "get") {
			if renderer := vs.renderer(w, r, req); renderer != nil {
				vs.serve(next, pass, w, r, req, renderer)
				return
			}
		}
		pass.ServeHTTP(w, r)
	}))
}

// renderer calls Options.Renderer.
func (vs *Views) renderer(w http.ResponseWriter, r *http.Request, req watchcodec.Request) Renderer {
	returned := false
	defer clientbody.LeavePanicked(w, r, &returned)
	renderer := vs.o.Renderer(r, req)
	returned = true
	return renderer
}

// rewriter returns a Rewriter for requests that no View serves: for a subresource, or for the
// response to a POST or DELETE. It renders an object without the others of its group.
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

// serve responds from a View.
func (vs *Views) serve(next, pass http.Handler, w http.ResponseWriter, r *http.Request, req watchcodec.Request, renderer Renderer) {
	accept, ok := watchcodec.Negotiate(r.Header["Accept"])
	if !ok {
		vs.o.respond(w, r, func(w http.ResponseWriter) {
			watchcodec.WriteStatus(w, watchcodec.NewFailure(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable, "this gateway can respond in application/json and application/vnd.kubernetes.protobuf only"))
		})
		return
	}
	returned := false
	defer clientbody.LeavePanicked(w, r, &returned)
	v, status := vs.use(next, collection(r, req, accept), renderer)
	if status != nil {
		returned = true
		vs.o.respond(w, r, func(w http.ResponseWriter) { fail(w, status) })
		return
	}
	defer v.release()
	err := v.await(r.Context())
	alone := req.Verb == "get" && forbidden(err) && renderer.Synced()
	returned = true
	switch {
	case err == nil:
	case alone:
		// A caller that may not list the collection may have the right to this object.
		pass.ServeHTTP(w, r)
		return
	default:
		vs.o.respond(w, r, func(w http.ResponseWriter) { refuse(w, err) })
		return
	}
	v.warn(w.Header())
	if req.Verb == "watch" {
		v.watch(w, r, req)
		return
	}
	vs.o.respond(w, r, func(w http.ResponseWriter) {
		if req.Verb == "get" {
			v.get(w, req)
		} else {
			v.list(w, r, req)
		}
	})
}

// respond calls write with a writer for the response to r, which is not a watch. The time for the
// request's body and for the response is bounded. net/http resets the deadline for the body when it
// has read the body, and waits for a client that leaves.
func (o *Options) respond(w http.ResponseWriter, r *http.Request, write func(http.ResponseWriter)) {
	clientbody.LeaveUnread(w, r)
	bounded := deadline.Bound(w, r, cmp.Or(o.WriteTimeout, deadline.OwnTimeout))
	write(bounded)
	bounded.Leave()
}

func forbidden(err error) bool {
	var refused *source.RefusedError
	return errors.As(err, &refused) && refused.Status == http.StatusForbidden
}

// collection returns the request that fills the View that serves r.
func collection(r *http.Request, req watchcodec.Request, accept string) *http.Request {
	out := r.Clone(r.Context())
	query := url.Values{}
	if req.Verb != "get" {
		requested := r.URL.Query()
		for _, name := range []string{"labelSelector", "fieldSelector"} {
			if value := requested.Get(name); value != "" {
				query.Set(name, value)
			}
		}
		if req.Name != "" && query.Get("fieldSelector") == "" { // of the legacy path /watch/…/NAME
			query.Set("fieldSelector", "metadata.name="+req.Name)
		}
	}
	out.URL = &url.URL{Path: req.CollectionPath(), RawQuery: query.Encode(), Scheme: r.URL.Scheme, Host: r.URL.Host}
	// A list and the watch that follows it use the same View, though their Accept fields differ.
	out.Header.Set("Accept", strings.ReplaceAll(accept, "as=PartialObjectMetadataList", "as=PartialObjectMetadata"))
	return out
}

// use returns the View for a collection, which view.release has to be called for.
func (vs *Views) use(next http.Handler, r *http.Request, renderer Renderer) (*view, *metav1.Status) {
	query := r.URL.Query()
	k := key{r.URL.Path, query.Get("labelSelector"), query.Get("fieldSelector"), r.Header.Get("Accept"), vs.o.Caller(r)}
	v, isNew, status := vs.findOrAdd(k, next, r, renderer)
	if isNew {
		v.start(func() {
			vs.removeView(k, v)
			vs.running.Done()
		})
	}
	return v, status
}

// findOrAdd returns the View of k, which it has acquired. If it is new, view.start has to be called.
func (vs *Views) findOrAdd(k key, next http.Handler, r *http.Request, renderer Renderer) (_ *view, isNew bool, _ *metav1.Status) {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	v := vs.views[k]
	if v != nil && v.acquire() {
		return v, false, nil
	}
	if v != nil {
		delete(vs.views, k) // it has ended
	}
	if vs.closed {
		return nil, false, watchcodec.NewFailure(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "this gateway is going down")
	}
	if status := vs.admit(networkOf(client.Addr(r))); status != nil {
		return nil, false, status
	}
	v, err := newView(&vs.o, next, r, renderer)
	if err != nil {
		return nil, false, watchcodec.NewFailure(http.StatusInternalServerError, metav1.StatusReasonInternalError, err.Error())
	}
	vs.made++
	v.number = vs.made
	vs.views[k] = v
	v.acquire()
	vs.running.Add(1)
	return v, true, nil
}

// errMadeRoom is the error of a View that was never filled and had to make room for another.
var errMadeRoom = errors.New("view: this gateway serves as many views as it may, and the server has said nothing yet")

// admit makes room for a View for a client of the network, or returns why it can't. Credentials are
// not known to be valid before the server has accepted them, so a new View replaces only one that
// was never filled.
func (vs *Views) admit(from netip.Prefix) *metav1.Status {
	pending := 0
	var oldest *view
	var oldestKey key
	for k, v := range vs.views {
		if v.filled.Load() {
			continue
		}
		if v.network == from {
			pending++
		}
		if oldest == nil || v.number < oldest.number {
			oldest, oldestKey = v, k
		}
	}
	switch {
	case pending >= vs.o.MaxPending:
		return watchcodec.NewFailure(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, "the server has not said yet whether it accepts the credentials of earlier requests from this address; retry later")
	case len(vs.views) < vs.o.MaxViews:
		return nil
	case oldest == nil:
		return watchcodec.NewFailure(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "this gateway serves as many views as it may")
	}
	delete(vs.views, oldestKey)
	oldest.cancel(errMadeRoom)
	return nil
}

// networkOf returns the network whose addresses one client may have: a single IPv4 address, or 64
// bits of IPv6 (RFC 6177).
func networkOf(addr netip.Addr) netip.Prefix {
	addr = addr.Unmap()
	bits := addr.BitLen()
	if addr.Is6() {
		bits = 64
	}
	network, _ := addr.Prefix(bits) // zero where the address is not known
	return network
}

func (vs *Views) removeView(k key, v *view) {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	if vs.views[k] == v {
		delete(vs.views, k)
	}
}

// Close ends all Views and their clients' watches, and waits for the goroutines of Views to end.
// Later requests get a 503.
func (vs *Views) Close() {
	vs.mu.Lock()
	vs.closed = true
	for _, v := range vs.views {
		v.cancel(errClosed)
	}
	vs.mu.Unlock()
	vs.running.Wait()
}

var errClosed = errors.New("view: this gateway is going down")

// Stats describes the state of a View.
type Stats struct {
	// Path is the path of the collection; LabelSelector and FieldSelector are those of its
	// requests.
	Path, LabelSelector, FieldSelector string
	// Synced reports whether clients are served.
	Synced bool
	// Objects is the number of the server's objects, Bytes the memory for them, and Clients the
	// number of requests that are being served.
	Objects, Bytes, Clients int
	// Stale is how long the server has been out of reach, 0 if it is not. Err is the reason.
	Stale time.Duration
	Err   error
}

// Stats returns the state of each View, in no particular order.
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

// acquire counts a client. It returns false if the View has ended.
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

// await waits until the View can be served, and returns an error if it can't.
func (v *view) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, v.o.SyncTimeout)
	defer cancel()
	select {
	case <-v.ready:
		v.mu.Lock()
		defer v.mu.Unlock()
		return v.err
	case <-ctx.Done():
		return errNotYet
	}
}
