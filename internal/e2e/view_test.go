package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/culvert-go/culvert/filters/topology"
	"github.com/culvert-go/culvert/watchcodec/view"
	"github.com/culvert-go/culvert/watchcodec/watchtest"
)

// units is topology.Inputs that tests change.
type units struct {
	mu     sync.Mutex
	of     map[string]string // unit by node
	labels map[string]map[string]string
	keys   map[string]string // topologyKeys by service
	topology.Subscribers
}

func newUnits() *units {
	return &units{of: map[string]string{}, labels: map[string]map[string]string{}, keys: map[string]string{}}
}

func (u *units) Labels(node string) (map[string]string, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	unit, ok := u.of[node]
	if u.labels[node]["unit"] != unit || u.labels[node] == nil {
		u.labels[node] = map[string]string{"unit": unit, "name": node}
	}
	return u.labels[node], ok
}

func (u *units) Service(_, name string) (topology.Service, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	keys, ok := u.keys[name]
	return topology.Service{Annotations: map[string]string{"topologyKeys": keys}}, ok
}

func (u *units) Synced() bool { return true }

// change changes something and publishes its name.
func (u *units) change(name string, do func()) {
	u.mu.Lock()
	do()
	u.mu.Unlock()
	u.Changed(name)
}

// history is what happens to a cluster, and what its node should see.
type history struct {
	rnd    *rand.Rand
	units  *units
	server *watchtest.Server
	slices map[string]*discoveryv1.EndpointSlice
}

const ownNode = "n0"

// step changes one thing.
func (h *history) step(generation int) {
	node, service := fmt.Sprintf("n%d", h.rnd.IntN(4)), fmt.Sprintf("s%d", h.rnd.IntN(3))
	switch n := h.rnd.IntN(10); {
	case n < 4:
		name := fmt.Sprintf("%s-%d", service, h.rnd.IntN(3))
		s := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop", Generation: int64(generation), Labels: map[string]string{discoveryv1.LabelServiceName: service}}, AddressType: discoveryv1.AddressTypeIPv4}
		for i := range h.rnd.IntN(4) {
			on := fmt.Sprintf("n%d", h.rnd.IntN(5))
			s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{fmt.Sprintf("10.0.%d.%d", i, generation%250)}, NodeName: &on})
		}
		h.slices[name] = s
		h.server.Set(s)
	case n < 5:
		if all := slices.Sorted(maps.Keys(h.slices)); len(all) > 0 {
			name := all[h.rnd.IntN(len(all))]
			delete(h.slices, name)
			h.server.Delete("shop", name)
		}
	case n < 8:
		h.units.change(topology.NodeName(node), func() { h.units.of[node] = fmt.Sprint(h.rnd.IntN(2)) })
	case n < 9:
		h.units.change(topology.ServiceName("shop", service), func() {
			h.units.keys[service] = []string{`["unit"]`, `["name"]`, `["name","unit"]`, `nonsense`}[h.rnd.IntN(4)]
		})
	default:
		h.units.change(topology.ServiceName("shop", service), func() { delete(h.units.keys, service) })
	}
}

// want is what SuperEdge's rules say, put together anew from the typed objects.
func (h *history) want() map[string]string {
	want := map[string]string{}
	for name, s := range h.slices {
		keys, ok := h.units.keys[s.Labels[discoveryv1.LabelServiceName]]
		line := fmt.Sprint(s.Generation)
		for _, e := range s.Endpoints {
			own, ownKnown := h.units.of[ownNode]
			unit, known := h.units.of[*e.NodeName]
			kept := !ok || keys == "nonsense"
			kept = kept || ownKnown && known && strings.Contains(keys, "unit") && own == unit
			kept = kept || ownKnown && known && strings.Contains(keys, "name") && *e.NodeName == ownNode
			if kept {
				line += " " + e.Addresses[0]
			}
		}
		want[name] = line
	}
	return want
}

func shownSlice(s *discoveryv1.EndpointSlice) string {
	line := fmt.Sprint(s.Generation)
	for _, e := range s.Endpoints {
		line += " " + e.Addresses[0]
	}
	return line
}

// sliceInformer is a real informer, and a map that its handlers make.
type sliceInformer struct {
	informer cache.SharedIndexInformer
	mu       sync.Mutex
	handled  map[string]string
}

func startSliceInformer(t *testing.T, url, contentType string) *sliceInformer {
	t.Helper()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: url, ContentConfig: rest.ContentConfig{ContentType: contentType, AcceptContentTypes: contentType + ",application/json"}})
	if err != nil {
		t.Fatal(err)
	}
	i := &sliceInformer{handled: map[string]string{}}
	factory := informers.NewSharedInformerFactory(client, 0)
	i.informer = factory.Discovery().V1().EndpointSlices().Informer()
	set := func(o any) {
		i.mu.Lock()
		defer i.mu.Unlock()
		s := o.(*discoveryv1.EndpointSlice)
		i.handled[s.Name] = shownSlice(s)
	}
	_, err = i.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: set, UpdateFunc: func(_, o any) { set(o) }, DeleteFunc: func(o any) {
		if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
			o = gone.Obj
		}
		i.mu.Lock()
		defer i.mu.Unlock()
		delete(i.handled, o.(*discoveryv1.EndpointSlice).Name)
	}})
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	factory.Start(stop)
	t.Cleanup(func() { close(stop); factory.Shutdown() })
	return i
}

func (i *sliceInformer) state() (store, handled map[string]string) {
	store = map[string]string{}
	for _, o := range i.informer.GetStore().List() {
		s := o.(*discoveryv1.EndpointSlice)
		store[s.Name] = shownSlice(s)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	return store, maps.Clone(i.handled)
}

// informerState is an informer whose state can be read.
type informerState interface {
	state() (store, handled map[string]string)
}

// olderInformer is an informer of an older client-go, in a process of its own.
type olderInformer struct {
	t     *testing.T
	stdin io.Writer
	out   *json.Decoder
}

// olderProgram is the module in informer34.
var olderProgram = kept("informer34", "informer34", ".", "go.*", "*.go")

func startOlderInformer(t *testing.T, url, contentType string) *olderInformer {
	t.Helper()
	program, err := olderProgram()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "-server", url, "-type", contentType)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdin.Close() // it ends with its input
		_ = cmd.Wait()
	})
	return &olderInformer{t, stdin, json.NewDecoder(out)}
}

func (i *olderInformer) state() (store, handled map[string]string) {
	var state struct{ Store, Handled map[string]string }
	_, err := io.WriteString(i.stdin, "\n")
	if err == nil {
		err = i.out.Decode(&state)
	}
	if err != nil {
		i.t.Error(err)
	}
	return state.Store, state.Handled
}

// TestInformersThroughTheView: slices, labels and annotations change, connections are cut, the server forgets its past and the
// gateway starts anew. Real informers behind it come to have what the rules say, in their stores and by the calls of their
// handlers.
func TestInformersThroughTheView(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			playInformers(t, seed)
		})
	}
}

func playInformers(t *testing.T, seed uint64) {
	server, err := watchtest.New(watchtest.Options{Resource: "endpointslices", Kind: "EndpointSlice", APIVersion: "discovery.k8s.io/v1", JSON: codecs[0], Protobuf: codecs[1], NoWatchList: seed%4 == 1})
	if err != nil {
		t.Fatal(err)
	}
	h := &history{rnd: rand.New(rand.NewPCG(seed, 7)), units: newUnits(), server: server, slices: map[string]*discoveryv1.EndpointSlice{}}
	backend := httptest.NewServer(server)
	t.Cleanup(backend.Close)
	gateway, restart := viewGateway(t, h.units, backend.Listener.Addr().String())
	plain := httptest.NewServer(withoutWatchList(gateway.Config.Handler))
	t.Cleanup(plain.Close)
	for generation := range 20 {
		h.step(generation)
	}
	clients := map[string]informerState{}
	for _, contentType := range []string{"application/json", "application/vnd.kubernetes.protobuf"} {
		clients[contentType] = startSliceInformer(t, gateway.URL, contentType)
		clients[contentType+", list and watch"] = startSliceInformer(t, plain.URL, contentType)
		clients[contentType+", client-go 0.34"] = startOlderInformer(t, gateway.URL, contentType)
	}
	// client-go waits longer after each interruption: many short histories, with a few each.
	for generation := 20; generation < 150; generation++ {
		h.step(generation)
		switch h.rnd.IntN(100) {
		case 0:
			server.Forget()
			backend.CloseClientConnections()
		case 1:
			backend.CloseClientConnections()
		case 2:
			gateway.CloseClientConnections()
			plain.CloseClientConnections()
		case 3:
			restart()
		case 4, 5, 6, 7:
			compareInformers(t, clients, h.want())
		}
	}
	compareInformers(t, clients, h.want())
}

// viewGateway is a gateway of a node, that can be restarted.
func viewGateway(t *testing.T, inputs topology.Inputs, backend string) (gateway *httptest.Server, restart func()) {
	t.Helper()
	p := plainProxy(t, backend)
	var handler atomic.Pointer[http.Handler]
	var filter *topology.Filter
	start := func() {
		f, err := topology.New(topology.Options{Node: ownNode, Inputs: inputs, Policy: topology.SuperEdge(), View: view.Options{Frames: 20}})
		if err != nil {
			t.Error(err)
			return
		}
		h := f.Filter(p)
		handler.Store(&h)
		if filter != nil {
			filter.Close()
		}
		filter = f
	}
	start()
	gateway = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*handler.Load()).ServeHTTP(w, r) }))
	t.Cleanup(func() {
		filter.Close()
		gateway.Close()
	})
	return gateway, start
}

// withoutWatchList makes clients list and watch.
func withoutWatchList(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("sendInitialEvents") != "" {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusUnprocessableEntity)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","reason":"Invalid","code":422}`)
			return
		}
		h.ServeHTTP(w, r)
	})
}

func compareInformers(t *testing.T, clients map[string]informerState, want map[string]string) {
	t.Helper()
	for name, client := range clients {
		var store, handled map[string]string
		tick := time.NewTicker(5 * time.Millisecond)
		for deadline := time.Now().Add(60 * time.Second); time.Now().Before(deadline); <-tick.C {
			if store, handled = client.state(); maps.Equal(store, want) && maps.Equal(handled, want) {
				break
			}
		}
		tick.Stop()
		if !maps.Equal(store, want) || !maps.Equal(handled, want) {
			t.Fatalf("%s: the store has\n%v\nthe handlers were called with\n%v\nwant\n%v", name, store, handled, want)
		}
	}
}
