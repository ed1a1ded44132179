package e2e

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
	"github.com/culvert-go/culvert/watchcodec"
	"github.com/culvert-go/culvert/watchcodec/watchtest"
)

// podServer is a scripted API server of pods.
func podServer(t *testing.T, noWatchList bool) *watchtest.Server {
	t.Helper()
	s, err := watchtest.New(watchtest.Options{
		Resource: "pods", Kind: "Pod", APIVersion: "v1", NoWatchList: noWatchList,
		JSON:     json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme.Scheme, scheme.Scheme, json.SerializerOptions{}),
		Protobuf: protobuf.NewSerializer(scheme.Scheme, scheme.Scheme),
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// filteredGateway stands in front of a server: it hides pods with the label hidden=yes and
// strips managedFields. Connections can be cut.
func filteredGateway(t *testing.T, server http.Handler) *httptest.Server {
	t.Helper()
	backend := httptest.NewServer(server)
	t.Cleanup(backend.Close)
	gateway := httptest.NewServer(filters.NewChain(hidingPods(t, watchcodec.FilterOptions{})).Then(plainProxy(t, backend.Listener.Addr().String())))
	t.Cleanup(gateway.Close)
	return gateway
}

// plainProxy is a proxy to one target.
func plainProxy(t *testing.T, target string) *proxy.Proxy {
	t.Helper()
	group, err := upstream.New(upstream.Options{}, upstream.Target{Addr: target})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { group.Close() })
	p, err := proxy.New(proxy.Options{Upstream: group})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// hidingPods hides pods with the label hidden=yes and strips managedFields.
func hidingPods(t *testing.T, o watchcodec.FilterOptions) culvert.Filter {
	t.Helper()
	strip := watchcodec.Delete(watchcodec.ManagedFields()...)
	o.Rewriter = func(_ *http.Request, req watchcodec.Request) watchcodec.Rewriter {
		if req.Resource != "pods" {
			return nil
		}
		return func(o *watchcodec.Object) (bool, error) {
			hidden, _ := o.Label("hidden")
			return string(hidden) != "yes", o.Edit(strip)
		}
	}
	hide, err := watchcodec.NewFilter(o)
	if err != nil {
		t.Fatal(err)
	}
	return hide
}

// startInformer starts an informer of pods and a record of the calls of its handlers, and waits
// until it is in step.
func startInformer(t *testing.T, client kubernetes.Interface) (cache.SharedIndexInformer, *handled) {
	t.Helper()
	h := &handled{pods: map[string]int64{}}
	factory := informers.NewSharedInformerFactory(client, 0)
	informer := factory.Core().V1().Pods().Informer()
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: h.set, UpdateFunc: func(_, o any) { h.set(o) }, DeleteFunc: h.delete}); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	factory.Start(stop)
	t.Cleanup(func() { close(stop); factory.Shutdown() })
	if !cache.WaitForCacheSync(stop, informer.HasSynced) {
		t.Fatal("no sync")
	}
	return informer, h
}

func somePod(i, generation int, hidden bool) *corev1.Pod {
	p := pod()
	p.Name, p.ResourceVersion, p.Generation = fmt.Sprintf("pod-%02d", i), "", int64(generation)
	p.Labels = map[string]string{"hidden": map[bool]string{true: "yes", false: "no"}[hidden]}
	return p
}

// handled is a store that is made from the calls of an informer's handlers.
type handled struct {
	mu   sync.Mutex
	pods map[string]int64 // generation by name
	errs []string
}

func (h *handled) set(o any) {
	p := o.(*corev1.Pod)
	h.mu.Lock()
	defer h.mu.Unlock()
	if p.Labels["hidden"] == "yes" || p.ManagedFields != nil {
		h.errs = append(h.errs, "the informer saw "+p.Name+" as it must not")
	}
	h.pods[p.Name] = p.Generation
}

func (h *handled) delete(o any) {
	if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = gone.Obj
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.pods, o.(*corev1.Pod).Name)
}

// TestInformersThroughTheFilter: after any changes of the pods, cuts of connections and losses
// of the server's history, the store of a real informer behind the filter, and a map made from
// the calls of its handlers, both hold what a reader of the server would see without the hidden
// pods.
func TestInformersThroughTheFilter(t *testing.T) {
	for _, contentType := range []string{"application/json", "application/vnd.kubernetes.protobuf"} {
		for _, noWatchList := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, WatchList %v", contentType, !noWatchList), func(t *testing.T) {
				t.Parallel()
				testInformer(t, contentType, noWatchList)
			})
		}
	}
}

func testInformer(t *testing.T, contentType string, noWatchList bool) {
	server := podServer(t, noWatchList)
	gateway := filteredGateway(t, server)
	client, err := kubernetes.NewForConfig(&rest.Config{Host: gateway.URL, ContentConfig: rest.ContentConfig{ContentType: contentType, AcceptContentTypes: contentType + ",application/json"}})
	if err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	want := map[string]int64{}
	change := func(generation int) {
		i := rnd.IntN(30)
		name := fmt.Sprintf("pod-%02d", i)
		if rnd.IntN(5) == 0 {
			server.Delete("shop", name)
			delete(want, name)
			return
		}
		hidden := rnd.IntN(2) == 0
		server.Set(somePod(i, generation, hidden))
		if delete(want, name); !hidden {
			want[name] = int64(generation)
		}
	}
	for generation := range 50 {
		change(generation)
	}
	informer, h := startInformer(t, client)
	for generation := 50; generation < 1000; generation++ {
		change(generation)
		switch { // now and then the informer catches up: what follows comes as events, not in a list
		case generation%300 == 0: // every watch is cut, and its past is gone
			server.Forget()
			gateway.CloseClientConnections()
		case generation%250 == 0:
			gateway.CloseClientConnections()
		case generation%50 == 0:
			server.Set(somePod(99, generation, false))
			want["pod-99"] = int64(generation)
			compareStores(t, informer, h, want)
		}
	}
	server.Set(somePod(99, 1000, false))
	want["pod-99"] = 1000
	compareStores(t, informer, h, want)
}

// compareStores waits until the informer has caught up.
func compareStores(t *testing.T, informer cache.SharedIndexInformer, h *handled, want map[string]int64) {
	t.Helper()
	var store map[string]int64
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		store = map[string]int64{}
		for _, o := range informer.GetStore().List() {
			store[o.(*corev1.Pod).Name] = o.(*corev1.Pod).Generation
		}
		h.mu.Lock()
		same := maps.Equal(store, want) && maps.Equal(h.pods, want)
		h.mu.Unlock()
		if same || time.Now().After(deadline) {
			break
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !maps.Equal(store, want) {
		t.Errorf("the store has\n%v\nwant\n%v", names(store), names(want))
	}
	if !maps.Equal(h.pods, want) {
		t.Errorf("the handlers were called with\n%v\nwant\n%v", names(h.pods), names(want))
	}
	for _, err := range h.errs {
		t.Error(err)
	}
}

func names(m map[string]int64) string {
	var all []string
	for name, generation := range m {
		all = append(all, name+"@"+strconv.FormatInt(generation, 10))
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}
