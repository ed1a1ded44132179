package view_test

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/culvert-go/culvert/watchcodec"
	"github.com/culvert-go/culvert/watchcodec/source"
	"github.com/culvert-go/culvert/watchcodec/view"
	"github.com/culvert-go/culvert/watchcodec/watchtest"
)

var (
	histories = flag.Int("histories", 1500, "how many histories TestModel plays")
	firstSeed = flag.Uint64("seed", 1, "the seed of the first one")
)

// paint is the state that rendering depends on: the colours of the names that objects refer to.
// Objects whose name has no colour are hidden.
type paint struct {
	mu         sync.Mutex
	colours    map[string]string
	synced     bool
	subscribed map[int]func(string)
	next       int
}

func newPaint() *paint {
	return &paint{colours: map[string]string{}, subscribed: map[int]func(string){}, synced: true}
}

func (p *paint) set(name, colour string) {
	p.mu.Lock()
	if colour == "" {
		delete(p.colours, name)
	} else {
		p.colours[name] = colour
	}
	subscribed := maps.Clone(p.subscribed)
	p.mu.Unlock()
	for _, changed := range subscribed {
		changed(name)
	}
}

func (p *paint) Synced() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.synced
}

func (p *paint) Subscribe(changed func(string)) func() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next++
	id := p.next
	p.subscribed[id] = changed
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.subscribed, id)
	}
}

func (p *paint) Group(o *watchcodec.Object) string {
	team, _ := o.Label("team")
	return string(team)
}

// Render adds the number of objects in the group that have a colour, and the colour.
func (p *paint) Render(items []view.Item, depends func(string)) error {
	painted := 0
	colours := make([]string, len(items))
	for i, item := range items {
		name, _ := item.Object.Label("like")
		depends(string(name))
		p.mu.Lock()
		colours[i] = p.colours[string(name)]
		p.mu.Unlock()
		if colours[i] != "" {
			painted++
		}
	}
	for i := range items {
		items[i].Hidden = colours[i] == ""
		if err := items[i].Object.Edit(watchcodec.Set(fmt.Sprintf("%s of %d", colours[i], painted), watchcodec.Annotation("colour")...)); err != nil {
			return err
		}
	}
	return nil
}

// model is the reference: the objects, and what clients should see of them.
type model struct {
	objects map[string][3]string // like, team, text by name
	paint   *paint
}

func (m *model) shown() map[string]string {
	shown := map[string]string{}
	for name, o := range m.objects {
		painted := 0
		for _, other := range m.objects {
			if (other[1] == o[1] && o[1] != "" || other == o && o[1] == "") && m.paint.colours[other[0]] != "" {
				painted++
			}
		}
		if o[1] == "" {
			painted = 1
		}
		if colour := m.paint.colours[o[0]]; colour != "" {
			shown[name] = fmt.Sprintf("%s of %d, %s", colour, painted, o[2])
		}
	}
	return shown
}

// client is an informer's state: a change without a new resourceVersion does not reach its
// handlers.
type client struct {
	mu      sync.Mutex
	shown   map[string]string
	version map[string]string
	seen    map[string]bool
	pause   func()
	errs    []string
}

func (c *client) Replacing() { c.seen = map[string]bool{} }

func (c *client) Set(o *watchcodec.Object) error {
	c.pause()
	c.mu.Lock()
	defer c.mu.Unlock()
	name, version := string(o.Name()), string(o.ResourceVersion())
	c.seen[name] = true
	if c.version[name] == version {
		return nil
	}
	colour, ok := o.Annotation("colour")
	if !ok {
		c.errs = append(c.errs, "an object that is not rendered")
	}
	text, _ := o.Label("text")
	c.shown[name], c.version[name] = fmt.Sprintf("%s, %s", colour, text), version
	return nil
}

func (c *client) Delete(o *watchcodec.Object) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.shown, string(o.Name()))
	delete(c.version, string(o.Name()))
	return nil
}

func (c *client) Replaced(source.Collection) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name := range c.shown {
		if !c.seen[name] {
			delete(c.shown, name)
			delete(c.version, name)
		}
	}
}

func (c *client) Lost(error) {}
func (c *client) Found()     {}

// switchboard is a handler that can cut off all its responses, and be replaced by another.
type switchboard struct {
	mu     sync.Mutex
	h      http.Handler
	cancel map[int]context.CancelFunc
	next   int
}

func (s *switchboard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	s.mu.Lock()
	s.next++
	id, h := s.next, s.h
	s.cancel[id] = cancel
	s.mu.Unlock()
	h.ServeHTTP(w, r.WithContext(ctx))
	s.mu.Lock()
	delete(s.cancel, id)
	s.mu.Unlock()
}

// put replaces the handler for the requests from now on.
func (s *switchboard) put(h http.Handler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.h = h
}

func (s *switchboard) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, cancel := range s.cancel {
		cancel()
	}
}

// noWatchList is a client that lists, and then watches.
func noWatchList(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("sendInitialEvents") != "" {
			http.Error(w, "not for me", http.StatusBadRequest)
			return
		}
		h.ServeHTTP(w, r)
	})
}

func newServer(t testing.TB, noWatchList bool) *watchtest.Server {
	s, err := watchtest.New(watchtest.Options{Resource: "things", Kind: "Thing", APIVersion: "example.org/v1", JSON: unstructured.UnstructuredJSONScheme, NoWatchList: noWatchList})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func thing(name string, of [3]string) *unstructured.Unstructured {
	labels := map[string]any{"like": of[0], "text": of[2]}
	if of[1] != "" {
		labels["team"] = of[1]
	}
	return &unstructured.Unstructured{Object: map[string]any{"kind": "Thing", "apiVersion": "example.org/v1", "metadata": map[string]any{"namespace": "n", "name": name, "uid": "u-" + name + of[2], "labels": labels}}}
}

func newViews(t testing.TB, o view.Options, p *paint) *view.Views {
	o.Renderer = func(*http.Request, watchcodec.Request) view.Renderer { return p }
	v, err := view.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

const collectionPath = "/apis/example.org/v1/things"

// TestModel plays random histories: objects and their dependencies change, connections are cut on
// both sides, the server forgets, the gateway restarts, clients are slow. In the end each client
// has what the model has.
func TestModel(t *testing.T) {
	for seed := *firstSeed; seed < *firstSeed+uint64(*histories); seed++ {
		synctest.Test(t, func(t *testing.T) { play(t, seed) })
		if t.Failed() {
			t.Fatalf("the seed is %d: go test ./watchcodec/view -run TestModel -args -seed %d -histories 1", seed, seed)
		}
	}
}

// play plays one history.
func play(t *testing.T, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 1))
	server := newServer(t, rnd.IntN(3) == 0)
	m := &model{objects: map[string][3]string{}, paint: newPaint()}
	upstream := &switchboard{h: server, cancel: map[int]context.CancelFunc{}}
	views := newViews(t, view.Options{Frames: 4 + rnd.IntN(30)}, m.paint)
	gateway := &switchboard{h: views.Filter(upstream), cancel: map[int]context.CancelFunc{}}

	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	clients := []*client{}
	join := func() {
		c := &client{shown: map[string]string{}, version: map[string]string{}, pause: func() {}}
		var h http.Handler = gateway
		switch rnd.IntN(3) {
		case 0:
			h = noWatchList(h)
		case 1:
			slow := rand.New(rand.NewPCG(seed, uint64(len(clients))+2))
			c.pause = func() { time.Sleep(time.Duration(slow.IntN(3000)) * time.Millisecond) }
		}
		r := httptest.NewRequest(http.MethodGet, collectionPath, nil)
		s, err := source.New(source.Options{Handler: h, Request: r, Sink: c})
		if err != nil {
			t.Fatal(err)
		}
		clients = append(clients, c)
		running.Go(func() { _ = s.Run(ctx) })
	}
	restart := func() {
		views.Close()
		views = newViews(t, view.Options{Frames: 4 + rnd.IntN(30)}, m.paint)
		gateway.put(views.Filter(upstream))
	}
	for range 5 + rnd.IntN(40) {
		step(rnd, m, server, upstream, gateway, join, restart)
	}
	if len(clients) == 0 {
		join()
	}
	time.Sleep(3 * time.Minute) // clients that were cut off have reconnected, slow ones have read
	synctest.Wait()
	want := m.shown()
	for i, c := range clients {
		if len(c.errs) > 0 || !maps.Equal(c.shown, want) {
			t.Errorf("seed %d, client %d: %v\n%v\nwant\n%v", seed, i, c.errs, c.shown, want)
		}
	}
	cancel()
	running.Wait()
	views.Close()
}

// step makes one random change.
func step(rnd *rand.Rand, m *model, server *watchtest.Server, upstream, gateway *switchboard, join, restart func()) {
	name := fmt.Sprintf("t%d", rnd.IntN(6))
	like := fmt.Sprintf("l%d", rnd.IntN(3))
	switch n := rnd.IntN(20); {
	case n < 6:
		o := [3]string{like, []string{"", "a", "b"}[rnd.IntN(3)], fmt.Sprint(rnd.IntN(4))}
		m.objects[name] = o
		server.Set(thing(name, o))
	case n < 8:
		delete(m.objects, name)
		server.Delete("n", name)
	case n < 12:
		m.paint.set(like, []string{"", "red", "blue"}[rnd.IntN(3)])
	case n < 13:
		server.Forget()
	case n < 14:
		upstream.cut()
	case n < 15:
		gateway.cut()
	case n < 16:
		join()
	case n < 17 && rnd.IntN(3) == 0:
		restart()
	case n < 19:
		synctest.Wait()
	default:
		time.Sleep(time.Duration(rnd.IntN(5000)) * time.Millisecond)
	}
}
