package demo

import (
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/culvert-go/culvert/watchcodec"
)

// pause is the time between two events of the watch.
const pause = 400 * time.Millisecond

// patience is how long the watch waits for the report that an event was seen.
const patience = 30 * time.Second

// cluster serves a watch of EndpointSlices. A client that names its watch (?step=name) gets each
// event when it has reported that it has seen the one before (?seen=name): two events that it
// then reads together were held back on the way, however busy the machine is.
type cluster struct {
	mu    sync.Mutex
	steps map[string]chan struct{}
}

func newCluster() *cluster { return &cluster{steps: map[string]chan struct{}{}} }

func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	if name := query.Get("seen"); name != "" {
		c.saw(name)
		w.WriteHeader(http.StatusNoContent)
		return
	}
	name := query.Get("step")
	if name == "" {
		watch(w, r, nil)
		return
	}
	seen := make(chan struct{}, 1)
	c.mu.Lock()
	c.steps[name] = seen
	c.mu.Unlock()
	watch(w, r, seen)
	c.mu.Lock()
	delete(c.steps, name)
	c.mu.Unlock()
}

// saw lets the watch of that name continue, if there is one.
func (c *cluster) saw(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case c.steps[name] <- struct{}{}:
	default:
	}
}

// watch responds as a kube-apiserver does to a watch of EndpointSlices: an event
// at a time, each in a chunk of its own, with pauses between them.
func watch(w http.ResponseWriter, r *http.Request, seen <-chan struct{}) {
	events, err := watchcodec.NewEventWriter(w)
	if err != nil {
		return // the client has disconnected
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	for i, kind := range []string{"ADDED", "ADDED", "MODIFIED", "MODIFIED", "DELETED", "BOOKMARK"} {
		if i > 0 && !wait(r, seen, late) {
			return
		}
		if events.WriteEvent(sliceEvent(kind, i)) != nil {
			return
		}
	}
}

// wait returns after a pause, when the client has seen the event before, or when that takes too
// long: then something holds events back, and the watch ends so that the client notices. It
// reports whether the client is still connected.
func wait(r *http.Request, seen <-chan struct{}, late *time.Timer) bool {
	select {
	case <-time.After(pause):
	case <-r.Context().Done():
		return false
	}
	if seen == nil {
		return true
	}
	select {
	case <-seen:
		late.Reset(patience)
	case <-late.C:
		late.Reset(0)
	case <-r.Context().Done():
		return false
	}
	return true
}

// sliceEvent is an event about one of two EndpointSlices.
func sliceEvent(kind string, i int) []byte {
	version := 4711 + i
	if kind == "BOOKMARK" {
		return fmt.Appendf(nil, `{"type":"BOOKMARK","object":{"kind":"EndpointSlice","apiVersion":"discovery.k8s.io/v1","metadata":{"resourceVersion":"%d"},"addressType":"","endpoints":null,"ports":null}}`, version)
	}
	return fmt.Appendf(nil, `{"type":%q,"object":{"kind":"EndpointSlice","apiVersion":"discovery.k8s.io/v1","metadata":{"name":"console-%d","namespace":"default","resourceVersion":"%d","labels":{"kubernetes.io/service-name":"console"}},"addressType":"IPv4","endpoints":[{"addresses":["10.244.%d.7"],"conditions":{"ready":true},"nodeName":"node%d"}],"ports":[{"name":"http","protocol":"TCP","port":8080}]}}`,
		kind, i%2+1, version, i%2, i%2)
}
