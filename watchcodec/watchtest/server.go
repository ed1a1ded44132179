// Package watchtest provides a Kubernetes API server for tests: it lists and watches objects of one
// resource, in JSON and protobuf, as the real server does, and fails where its Options say so.
// client-go's informers and kubectl work with it.
package watchtest

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"sync"

	"github.com/gorilla/websocket"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/culvert-go/culvert/watchcodec"
)

// Options configures a Server.
type Options struct {
	// Resource is the plural name of the only resource, "pods" for instance. Required.
	Resource string
	// Kind and APIVersion are those of the objects. Required.
	Kind, APIVersion string
	// JSON and Protobuf encode one object. JSON is required; if Protobuf is nil, the server
	// responds in JSON only. client-go's scheme has both.
	JSON, Protobuf runtime.Encoder
	// NoWatchList refuses a watch that requests initial events with a 422, as a server does that
	// does not support them.
	NoWatchList bool
	// Gzip compresses every response for clients that accept that. (The real server compresses
	// large lists only.)
	Gzip bool
}

// Server is an http.Handler. It is safe for concurrent use by multiple goroutines.
type Server struct {
	o         Options
	webSocket http.Handler // serves watches over WebSocket

	mu      sync.Mutex
	version int // of the latest change
	oldest  int // changes up to it are forgotten
	objects map[string]runtime.Object
	base    map[string]runtime.Object // as they were at oldest
	changes []change
	changed chan struct{} // closed at the next change
}

// change is an event of the past.
type change struct {
	version int
	kind    watchcodec.EventType
	object  runtime.Object
}

// New checks the options and returns a server without objects.
func New(o Options) (*Server, error) {
	if o.Resource == "" || o.Kind == "" || o.APIVersion == "" || o.JSON == nil {
		return nil, errors.New("watchtest: Options: Resource, Kind, APIVersion and JSON are needed")
	}
	s := &Server{o: o, version: 1, objects: map[string]runtime.Object{}, changed: make(chan struct{})}
	s.webSocket = watchcodec.WebSocketWatch(math.MaxInt)(http.HandlerFunc(s.serve))
	return s, nil
}

// Set adds or changes an object, and returns its new resourceVersion. The object is copied. Set
// panics if object has no metadata.
func (s *Server) Set(object runtime.Object) (resourceVersion string) {
	object = object.DeepCopyObject()
	s.mu.Lock()
	defer s.mu.Unlock()
	kind := watchcodec.Added
	if s.objects[key(object)] != nil {
		kind = watchcodec.Modified
	}
	s.objects[key(object)] = object
	return s.addChange(kind, object)
}

// Delete deletes an object. If it does not exist, Delete does nothing.
func (s *Server) Delete(namespace, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	object := s.objects[namespace+"/"+name]
	if object == nil {
		return
	}
	delete(s.objects, namespace+"/"+name)
	s.addChange(watchcodec.Deleted, object.DeepCopyObject())
}

// addChange sets the next version of object and wakes the watches.
func (s *Server) addChange(kind watchcodec.EventType, object runtime.Object) string {
	s.version++
	version := strconv.Itoa(s.version)
	accessor(object).SetResourceVersion(version)
	object.GetObjectKind().SetGroupVersionKind(gvk(s.o.APIVersion, s.o.Kind))
	s.changes = append(s.changes, change{s.version, kind, object})
	close(s.changed)
	s.changed = make(chan struct{})
	return version
}

// Forget removes the history, as etcd's compaction does: a watch from an older resourceVersion gets
// a 410, and so does a list at one.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changes, s.oldest, s.base = nil, s.version, maps.Clone(s.objects)
}

func accessor(object runtime.Object) metav1.Object {
	a, err := meta.Accessor(object)
	if err != nil {
		panic(err)
	}
	return a
}

func key(object runtime.Object) string {
	a := accessor(object)
	return a.GetNamespace() + "/" + a.GetName()
}

// ServeHTTP responds to lists, gets and watches, also over WebSocket.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if websocket.IsWebSocketUpgrade(r) {
		s.webSocket.ServeHTTP(w, r)
		return
	}
	w, end := s.zip(w, r)
	defer end()
	s.serve(w, r)
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	req, ok := watchcodec.Classify(r)
	if !ok || req.Resource != s.o.Resource {
		s.refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, "the server could not find the requested resource")
		return
	}
	switch req.Verb {
	case "list":
		s.list(w, r, req)
	case "watch":
		s.watch(w, r, req)
	case "get":
		s.get(w, r, req)
	default:
		s.refuse(w, http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed, "this server only lists, watches and gets")
	}
}

// current returns the objects of a namespace and the current version.
func (s *Server) current(namespace string) (objects []runtime.Object, version int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return within(s.objects, namespace), s.version
}

// at returns the objects of a namespace as they were at a version. ok is false if that version is
// forgotten or in the future.
func (s *Server) at(version int, namespace string) (objects []runtime.Object, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if version < s.oldest || version > s.version {
		return nil, false
	}
	all := maps.Clone(s.base)
	if all == nil {
		all = map[string]runtime.Object{}
	}
	for _, c := range s.changes {
		switch {
		case c.version > version:
		case c.kind == watchcodec.Deleted:
			delete(all, key(c.object))
		default:
			all[key(c.object)] = c.object
		}
	}
	return within(all, namespace), true
}

// within returns the objects of a namespace, "" for all, in the order of their keys.
func within(all map[string]runtime.Object, namespace string) (objects []runtime.Object) {
	for _, object := range all {
		if namespace == "" || accessor(object).GetNamespace() == namespace {
			objects = append(objects, object)
		}
	}
	slices.SortFunc(objects, func(a, b runtime.Object) int { return cmp.Compare(key(a), key(b)) })
	return objects
}

// since returns the changes after a version. forgotten reports whether some of them are lost; more
// is closed when there are further ones.
func (s *Server) since(version int) (changes []change, forgotten bool, more <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if version < s.oldest {
		return nil, true, nil
	}
	i, _ := slices.BinarySearchFunc(s.changes, version+1, func(c change, v int) int { return cmp.Compare(c.version, v) })
	return slices.Clone(s.changes[i:]), false, s.changed
}

func (s *Server) get(w http.ResponseWriter, r *http.Request, req watchcodec.Request) {
	s.mu.Lock()
	object := s.objects[req.Namespace+"/"+req.Name]
	s.mu.Unlock()
	if object == nil {
		s.refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, fmt.Sprintf("%s %q not found", req.Resource, req.Name))
		return
	}
	f := s.negotiate(r)
	w.Header().Set("Content-Type", f.contentType)
	_, _ = w.Write(f.object(object))
}
