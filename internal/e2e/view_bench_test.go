package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/culvert-go/culvert/filters/topology"
	"github.com/culvert-go/culvert/watchcodec"
)

const benchServices, benchEndpoints, benchNodes = 5000, 20, 200

// benchStream is what a client receives that requests all slices as events: 5,000 services of 20
// endpoints on 200 nodes.
var benchStream = sync.OnceValue(func() []byte {
	var b []byte
	for i := range benchServices {
		s := endpointSlice(benchEndpoints)
		s.Name, s.Labels = fmt.Sprintf("s%04d-abcde", i), map[string]string{discoveryv1.LabelServiceName: fmt.Sprintf("s%04d", i), "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io"}
		for j := range s.Endpoints {
			node := fmt.Sprintf("node%03d", (i*7+j*11)%benchNodes)
			s.Endpoints[j].NodeName = &node
		}
		b = appendBenchEvent(b, "ADDED", s)
	}
	return appendBenchEvent(b, "BOOKMARK", &discoveryv1.EndpointSlice{TypeMeta: metav1.TypeMeta{Kind: "EndpointSlice", APIVersion: "discovery.k8s.io/v1"},
		ObjectMeta: metav1.ObjectMeta{ResourceVersion: "99999", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}})
})

func appendBenchEvent(b []byte, kind string, object apiruntime.Object) []byte {
	var encoded bytes.Buffer
	if err := codecs[watchcodec.Protobuf].Encode(object, &encoded); err != nil {
		panic(err)
	}
	event := metav1.WatchEvent{Type: kind, Object: apiruntime.RawExtension{Raw: encoded.Bytes()}}
	body, err := event.Marshal()
	if err != nil {
		panic(err)
	}
	n := len(body)
	return append(append(b, byte(n>>24), byte(n>>16), byte(n>>8), byte(n)), body...)
}

// benchServer sends benchStream, and nothing after it.
func benchServer() *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/vnd.kubernetes.protobuf;stream=watch")
		_, _ = w.Write(benchStream())
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkFirstSync compares a View's first sync, up to a client's first initial event,
// with that of a typed informer of the same slices. The memory is what is held then.
func BenchmarkFirstSync(b *testing.B) {
	server := benchServer()
	defer server.Close()
	b.Run("informer", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			before := heap()
			client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/vnd.kubernetes.protobuf", AcceptContentTypes: "application/vnd.kubernetes.protobuf"}})
			if err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
			factory := informers.NewSharedInformerFactory(client, 0)
			informer := factory.Discovery().V1().EndpointSlices().Informer()
			stop := make(chan struct{})
			factory.Start(stop)
			cache.WaitForCacheSync(stop, informer.HasSynced)
			b.StopTimer()
			b.ReportMetric(float64(heap()-before)/(1<<20), "MiB")
			close(stop)
			factory.Shutdown()
			b.StartTimer()
		}
	})
	b.Run("view", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			before := heap()
			b.StartTimer()
			v := startBenchView(b, server, annotated(newUnits()))
			b.StopTimer()
			b.ReportMetric(float64(heap()-before)/(1<<20), "MiB")
			v.close()
			b.StartTimer()
		}
	})
}

// annotated has all nodes in one of two units, and topologyKeys for all services.
func annotated(u *units) *units {
	for i := range benchNodes {
		u.of[fmt.Sprintf("node%03d", i)] = fmt.Sprint(i % 2)
	}
	u.of[ownNode] = "0"
	for i := range benchServices {
		u.keys[fmt.Sprintf("s%04d", i)] = `["unit"]`
	}
	return u
}

// benchView is a view with one client.
type benchView struct {
	filter *topology.Filter
	cancel context.CancelFunc
	done   chan struct{}
	events chan time.Time // when the client was sent something
}

// startBenchView returns when the client has its first bytes.
func startBenchView(b *testing.B, server *httptest.Server, inputs topology.Inputs) *benchView {
	f, err := topology.New(topology.Options{Node: ownNode, Inputs: inputs, Policy: topology.SuperEdge()})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	v := &benchView{filter: f, cancel: cancel, done: make(chan struct{}), events: make(chan time.Time, 1<<16)}
	r := httptest.NewRequest(http.MethodGet, "/apis/discovery.k8s.io/v1/endpointslices?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan", nil).WithContext(ctx)
	r.Header.Set("Accept", "application/vnd.kubernetes.protobuf")
	go func() {
		defer close(v.done)
		f.Filter(overHTTP(server.URL)).ServeHTTP(&timed{header: http.Header{}, events: v.events}, r)
	}()
	<-v.events
	return v
}

func (v *benchView) close() {
	v.cancel()
	<-v.done
	v.filter.Close()
}

// timed is a client that notes when it is sent something.
type timed struct {
	header http.Header
	events chan time.Time
}

func (c *timed) Header() http.Header { return c.header }
func (c *timed) WriteHeader(int)     {}
func (c *timed) Write(p []byte) (int, error) {
	select {
	case c.events <- time.Now():
	default:
	}
	return len(p), nil
}
func (c *timed) FlushError() error { return nil }

// overHTTP forwards requests to a server, as a proxy does.
func overHTTP(url string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		out, err := http.NewRequestWithContext(r.Context(), r.Method, url+r.URL.RequestURI(), nil)
		if err != nil {
			panic(err)
		}
		resp, err := http.DefaultTransport.RoundTrip(out)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer resp.Body.Close()
		w.Header().Set("Content-Type", resp.Header.Get("Content-Type"))
		_, _ = io.CopyBuffer(struct{ io.Writer }{w}, resp.Body, make([]byte, 64<<10))
	})
}

// BenchmarkRelabel measures the time from a changed label's arrival to the first and to the
// last of the client's events about it: of 5,000 services 500 have an endpoint on the node.
func BenchmarkRelabel(b *testing.B) {
	server := benchServer()
	defer server.Close()
	inputs := annotated(newUnits())
	v := startBenchView(b, server, inputs)
	defer v.close()
	time.Sleep(time.Second) // the initial events were received
	var first, last []time.Duration
	i := 0
	for b.Loop() {
		for len(v.events) > 0 {
			<-v.events
		}
		node := fmt.Sprintf("node%03d", i%benchNodes)
		i++
		begin := time.Now()
		inputs.change(topology.NodeName(node), func() { inputs.of[node] = map[string]string{"0": "1", "1": "0"}[inputs.of[node]] })
		at := <-v.events
		first = append(first, at.Sub(begin))
		for range 499 {
			at = <-v.events
		}
		last = append(last, at.Sub(begin))
	}
	for name, times := range map[string][]time.Duration{"first": first, "last": last} {
		slices.Sort(times)
		b.ReportMetric(float64(times[len(times)*99/100].Microseconds()), "p99-us-"+name)
	}
}
