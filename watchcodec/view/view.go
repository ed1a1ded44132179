package view

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/culvert-go/culvert/internal/client"
	"github.com/culvert-go/culvert/internal/nested"
	"github.com/culvert-go/culvert/watchcodec"
	"github.com/culvert-go/culvert/watchcodec/source"
)

// view is one resource, in one format, as one caller sees it.
type view struct {
	o       *Options
	ready   chan struct{} // closed when the view can be served, or has ended
	ctx     context.Context
	cancel  context.CancelCauseFunc
	source  *source.Source
	wake    chan struct{} // receives when a dependency has changed
	network netip.Prefix  // the network of the client that it was made for
	number  uint64        // in the order in which Views are made
	filled  atomic.Bool   // it was ready to be served

	mu      sync.Mutex
	store   store
	synced  bool // the server has sent all objects
	fanout  *watchcodec.Fanout
	err     error // why it has ended
	lost    time.Time
	lostErr error
	clients int
	idle    *time.Timer

	changesMu sync.Mutex
	changes   map[string]struct{} // names of changed dependencies
}

// newView returns a view of r's collection, which it follows with r's credentials.
func newView(o *Options, upstream http.Handler, r *http.Request, renderer Renderer) (*view, error) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(nested.Without(r.Context()))) // it outlives the request
	v := &view{
		o: o, network: networkOf(client.Addr(r)), ready: make(chan struct{}), ctx: ctx, cancel: cancel, wake: make(chan struct{}, 1), changes: map[string]struct{}{},
		store: store{
			renderer: contained{renderer, o.Log}, log: o.Log, clock: newClock(), max: o.MaxBytes,
			entries: map[string]*entry{}, groups: map[string]*group{}, dependents: map[string]*dependency{},
		},
	}
	v.idle = time.AfterFunc(o.Idle, func() { cancel(nil) })
	v.idle.Stop()
	var err error
	v.source, err = source.New(source.Options{Handler: upstream, Request: r, Sink: v, MaxObject: o.MaxObject, InitialTimeout: o.InitialTimeout, MaxWatch: o.Reauthorize})
	if err != nil {
		cancel(err)
		return nil, err
	}
	return v, nil
}

// errSubscribe is the error of a View that has ended because Subscribe panicked.
var errSubscribe = errors.New("view: the Renderer panicked in Subscribe")

// start subscribes to the Renderer and starts to follow the collection. It calls done when that has
// ended. It must be called without a lock, since it calls Subscribe, and passes on a panic of that.
func (v *view) start(done func()) {
	subscribed := false
	defer func() {
		if !subscribed { // others may wait for the View
			v.cancel(nil)
			v.finish(errSubscribe)
			done()
		}
	}()
	unsubscribe := v.store.renderer.subscribe(v.changed)
	subscribed = true
	var reducing sync.WaitGroup
	reducing.Go(v.reduce)
	go func() {
		err := v.source.Run(v.ctx)
		if v.ctx.Err() != nil {
			err = context.Cause(v.ctx)
		}
		v.finish(err)
		v.cancel(nil)
		unsubscribe()
		reducing.Wait()
		done()
	}()
}

// finish ends the clients' watches.
func (v *view) finish(err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.err = err; v.fanout != nil {
		v.fanout.Close()
	}
	v.idle.Stop()
	if !v.isReady() {
		close(v.ready)
	}
}

func (v *view) isReady() bool {
	select {
	case <-v.ready:
		return true
	default:
		return false
	}
}

// changed is called by the Renderer. It takes no lock that is held while rendering.
func (v *view) changed(name string) {
	v.changesMu.Lock()
	v.changes[name] = struct{}{}
	v.changesMu.Unlock()
	select {
	case v.wake <- struct{}{}:
	default:
	}
}

// reduce renders the groups whose dependencies have changed.
func (v *view) reduce() {
	for {
		select {
		case <-v.ctx.Done():
			return
		case <-v.wake:
		}
		v.changesMu.Lock()
		changes := v.changes
		v.changes = map[string]struct{}{}
		v.changesMu.Unlock()
		v.mu.Lock()
		if v.fanout == nil {
			v.serveIfSynced()
		} else {
			v.renderDependents(changes)
		}
		v.mu.Unlock()
	}
}

func (v *view) renderDependents(changes map[string]struct{}) {
	groups := map[*group]struct{}{}
	for name := range changes {
		if d := v.store.dependents[name]; d != nil {
			maps.Copy(groups, d.groups)
		}
	}
	for g := range groups {
		v.store.render(g)
	}
}

// serveIfSynced renders everything and lets clients in, if all objects are known and the view is
// not ready yet.
func (v *view) serveIfSynced() {
	if !v.synced || v.isReady() || !v.store.renderer.synced() {
		return
	}
	for _, g := range v.store.groups {
		v.store.render(g)
	}
	f, err := watchcodec.NewFanout(watchcodec.FanoutOptions{
		Format: v.store.collection.Format, Frames: v.o.Frames, Bytes: v.o.FrameBytes, WriteTimeout: v.o.WriteTimeout, Version: v.store.clock.next(),
	})
	if err != nil {
		panic(err) // New has checked them
	}
	v.fanout, v.store.emit = f, f.SendVersion
	v.filled.Store(true)
	close(v.ready)
}

// Replacing implements source.Sink, as do Set, Delete, Replaced, Lost and Found.
func (v *view) Replacing() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.store.round++
}

// Set implements source.Sink.
func (v *view) Set(o *watchcodec.Object) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.store.collection.Kind == "" {
		v.store.collection = source.Collection{Format: o.Format(), APIVersion: string(o.APIVersion()), Kind: string(o.Kind())}
	}
	if v.store.collection.Format != o.Format() {
		return errors.New("view: the server has changed the format")
	}
	groups, err := v.store.set(o)
	for _, g := range groups {
		if err == nil && g != nil && v.fanout != nil {
			v.store.render(g)
		}
	}
	return err
}

// Delete implements source.Sink.
func (v *view) Delete(o *watchcodec.Object) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.remove(keyOf(o))
	return nil
}

func (v *view) remove(key string) {
	if left := v.store.remove(key); left != nil && v.fanout != nil {
		v.store.render(left)
	}
}

// Replaced implements source.Sink.
func (v *view) Replaced(c source.Collection) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.synced = true
	v.store.collection = c
	for _, key := range v.store.unseen() {
		v.remove(key)
	}
	v.serveIfSynced()
}

// Lost implements source.Sink.
func (v *view) Lost(err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.lost.IsZero() {
		v.lost = time.Now()
		v.o.Log.Warn("view: the API server is out of reach; what is known of it is served", "kind", v.store.collection.Kind, "error", err)
	}
	v.lostErr = err
}

// Found implements source.Sink.
func (v *view) Found() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.lost, v.lostErr = time.Time{}, nil
}

// snapshot returns all objects as clients see them now, and their version.
func (v *view) snapshot() (out [][]byte, version uint64, c source.Collection) {
	v.mu.Lock()
	defer v.mu.Unlock()
	keys := make([]string, 0, len(v.store.entries))
	for key, e := range v.store.entries {
		if e.out != nil {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	out = make([][]byte, len(keys))
	for i, key := range keys {
		out[i] = v.store.entries[key].out
	}
	return out, v.fanout.Version(), v.store.collection
}

// find returns one object as clients see it, nil if it is hidden or does not exist.
func (v *view) find(key string) (out []byte, c source.Collection) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if e := v.store.entries[key]; e != nil {
		out = e.out
	}
	return out, v.store.collection
}
