package topology_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/culvert-go/culvert/filters/topology"
	"github.com/culvert-go/culvert/watchcodec"
	"github.com/culvert-go/culvert/watchcodec/watchtest"
)

// cluster implements Inputs with a few nodes: node0 and node3 in unit 1, node1 and node2 in unit 2.
type cluster struct {
	mu       sync.Mutex
	labels   map[string]map[string]string
	services map[string]topology.Service
	synced   bool
	topology.Subscribers
}

func newCluster() *cluster {
	c := &cluster{labels: map[string]map[string]string{}, services: map[string]topology.Service{}, synced: true}
	for node, unit := range map[string]string{"node0": "1", "node1": "2", "node2": "2", "node3": "1"} {
		c.labels[node] = map[string]string{"zone1": "unit" + unit, "kubernetes.io/hostname": node, "topology.kubernetes.io/zone": "zone" + unit, "apps.openyurt.io/nodepool": "pool" + unit}
	}
	c.labels["bare"] = nil
	return c
}

func (c *cluster) Labels(node string) (map[string]string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	labels, ok := c.labels[node]
	return labels, ok
}

func (c *cluster) Service(namespace, name string) (topology.Service, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, ok := c.services[namespace+"/"+name]
	return s, ok
}

func (c *cluster) Synced() bool { return c.synced }

func (c *cluster) relabel(node string, labels map[string]string) {
	c.mu.Lock()
	c.labels[node] = labels
	c.mu.Unlock()
	c.Changed(topology.NodeName(node))
}

func (c *cluster) annotate(name, annotation, value string) {
	c.mu.Lock()
	c.services["shop/"+name] = topology.Service{Annotations: map[string]string{annotation: value}}
	c.mu.Unlock()
	c.Changed(topology.ServiceName("shop", name))
}

// TestPolicies: each policy keeps the endpoints in want, of those on node0 to node3, on an unknown
// node, on a node without labels and on no node.
func TestPolicies(t *testing.T) {
	const superedge, openyurt = "topologyKeys", "openyurt.io/topologyKeys"
	for _, c := range []struct {
		policy            topology.Policy
		node              string
		annotation, value string
		distribution      string
		want              string // the last letters of the nodes of the endpoints that are kept; - is no node
	}{
		{topology.SuperEdge(), "node0", superedge, `["zone1"]`, "", "03"},
		{topology.SuperEdge(), "node1", superedge, `["zone1"]`, "", "12"},
		{topology.SuperEdge(), "node1", superedge, `["kubernetes.io/hostname","zone1"]`, "", "12"},
		{topology.SuperEdge(), "node1", superedge, `["other"]`, "", ""},
		{topology.SuperEdge(), "node9", superedge, `["zone1"]`, "", ""},
		{topology.SuperEdge(), "bare", superedge, `["zone1"]`, "", ""},
		{topology.SuperEdge(), "node0", superedge, `["*"]`, "", ""},
		{topology.SuperEdge(), "node0", superedge, `no JSON`, "", "0123xe-"},
		{topology.SuperEdge(), "node0", superedge, `[]`, "", "0123xe-"},
		{topology.SuperEdge(), "node0", "another", `["zone1"]`, "", "0123xe-"},
		{topology.Ordered(), "node1", superedge, `["kubernetes.io/hostname","zone1"]`, "", "1"},
		{topology.Ordered(), "node2", superedge, `["kubernetes.io/hostname","zone1","*"]`, "", "12"}, // its own is not ready
		{topology.Ordered(), "node0", superedge, `["other","*"]`, "", "0123xe-"},
		{topology.Ordered(), "node0", superedge, `["other"]`, "", ""},
		{topology.OpenYurt(), "node0", openyurt, "kubernetes.io/hostname", "", "0"},
		{topology.OpenYurt(), "node0", openyurt, "openyurt.io/nodepool", "", "03"},
		{topology.OpenYurt(), "node0", openyurt, "kubernetes.io/zone", "", "03"},
		{topology.OpenYurt(), "node9", openyurt, "openyurt.io/nodepool", "", ""},
		{topology.OpenYurt(), "node0", openyurt, "another", "", "0123xe-"},
		{topology.OpenYurt(), "node0", superedge, "", "", "0123xe-"},
		{topology.TrafficDistribution(), "node0", "", "", "PreferSameZone", "03"},
		{topology.TrafficDistribution(), "node0", "", "", "PreferClose", "03"},
		{topology.TrafficDistribution(), "node0", "", "", "PreferSameNode", "0"},
		{topology.TrafficDistribution(), "bare", "", "", "PreferSameZone", ""},
		{topology.TrafficDistribution(), "node0", "", "", "", "0123xe-"},
		{topology.WithFallback(topology.SuperEdge()), "node0", superedge, `["other"]`, "", "0123xe-"},
		{topology.WithFallback(topology.SuperEdge()), "node0", superedge, `["zone1"]`, "", "03"},
	} {
		cluster := newCluster()
		q := &topology.Question{Node: c.node, Known: true, Explain: true, Service: topology.Service{Annotations: map[string]string{c.annotation: c.value}, TrafficDistribution: c.distribution},
			LabelsOf: func(node string) map[string]string {
				labels, ok := cluster.Labels(node)
				if ok && labels == nil {
					labels = map[string]string{}
				}
				return labels
			}}
		for _, node := range []string{"node0", "node1", "node2", "node3", "nodex", "bare", ""} {
			q.Endpoints = append(q.Endpoints, topology.Endpoint{Node: node, Ready: node != "node2"})
		}
		kept := ""
		for i, d := range c.policy.Decide(q) {
			if d.Why == "" {
				t.Errorf("%+v: no reason for %+v", c, q.Endpoints[i])
			}
			if node := q.Endpoints[i].Node; d.Keep {
				kept += ("-" + node)[len(node):]
			}
		}
		if kept != c.want {
			t.Errorf("%s at %s, %s %s %s: %q, want %q", c.policy.Name, c.node, c.annotation, c.value, c.distribution, kept, c.want)
		}
	}
}

func object(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	var o unstructured.Unstructured
	if err := json.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	return &o
}

const slicesPath, endpointsPath = "/apis/discovery.k8s.io/v1/endpointslices", "/api/v1/endpoints"

// sliceOf returns an EndpointSlice of a service with an endpoint on each node.
func sliceOf(name, service string, nodes ...string) string {
	var endpoints []string
	for _, node := range nodes {
		endpoints = append(endpoints, `{"addresses":["10.0.0.`+node[len(node)-1:]+`"],"conditions":{"ready":true},"nodeName":"`+node+`"}`)
	}
	return `{"kind":"EndpointSlice","apiVersion":"discovery.k8s.io/v1","metadata":{"name":"` + name + `","namespace":"shop","uid":"` + name + `","labels":{"kubernetes.io/service-name":"` + service + `"}},
		"addressType":"IPv4","endpoints":[` + strings.Join(endpoints, ",") + `],"ports":[{"port":80}]}`
}

func serverOf(t testing.TB, kind, apiVersion, resource string, objects ...string) *watchtest.Server {
	t.Helper()
	s, err := watchtest.New(watchtest.Options{Resource: resource, Kind: kind, APIVersion: apiVersion, JSON: unstructured.UnstructuredJSONScheme})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range objects {
		s.Set(object(t, text))
	}
	return s
}

func filterOf(t testing.TB, c *cluster, node string, p topology.Policy) *topology.Filter {
	t.Helper()
	f, err := topology.New(topology.Options{Node: node, Inputs: c, Policy: p})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// watch returns the events that a client receives in a minute, one a line: the type, the object's name and its
// addresses.
func watch(t *testing.T, h http.Handler, path string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", path, nil).WithContext(ctx))
	var lines []string
	type address struct {
		Addresses []string
		IP        string
	}
	d := json.NewDecoder(w.Body)
	for d.More() {
		var e struct {
			Type   string
			Object struct {
				Metadata  struct{ Name string }
				Endpoints []address
				Subsets   []struct {
					Addresses, NotReadyAddresses []address
					Ports                        []struct{ Port int }
				}
			}
		}
		if err := d.Decode(&e); err != nil {
			t.Fatal(err)
		}
		line := e.Type + " " + e.Object.Metadata.Name
		for _, endpoint := range e.Object.Endpoints {
			line += " " + strings.Join(endpoint.Addresses, ",")
		}
		for _, subset := range e.Object.Subsets {
			line += " ["
			for _, a := range subset.Addresses {
				line += a.IP + " "
			}
			for _, a := range subset.NotReadyAddresses {
				line += "not " + a.IP + " "
			}
			line = strings.TrimSpace(line) + "]"
			for _, p := range subset.Ports {
				line += ":" + string(rune('0'+p.Port%10))
			}
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// TestRelabel: a node sees the endpoints of its unit. When a label of a node changes, it receives the
// change though no slice has changed. A slice without endpoints is kept.
func TestRelabel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		c.annotate("web", "topologyKeys", `["zone1"]`)
		server := serverOf(t, "EndpointSlice", "discovery.k8s.io/v1", "endpointslices",
			sliceOf("web-abc", "web", "node0", "node1", "node2"), sliceOf("web-def", "web", "node1"), sliceOf("other-abc", "other", "node1"))
		f := filterOf(t, c, "node0", topology.SuperEdge())
		defer f.Close()
		h := f.Filter(server)
		go func() {
			time.Sleep(10 * time.Second)
			c.relabel("node2", map[string]string{"zone1": "unit1"})
			time.Sleep(10 * time.Second)
			c.annotate("web", "topologyKeys", `["kubernetes.io/hostname"]`)
			time.Sleep(10 * time.Second)
			server.Set(object(t, sliceOf("web-def", "web", "node0")))
		}()
		if got, want := watch(t, h, slicesPath+"?watch=1"), `ADDED other-abc 10.0.0.1
ADDED web-abc 10.0.0.0
ADDED web-def
MODIFIED web-abc 10.0.0.0 10.0.0.2
MODIFIED web-abc 10.0.0.0
MODIFIED web-def 10.0.0.0`; got != want {
			t.Errorf("%s\nwant\n%s", got, want)
		}
	})
}

// TestSlicesOfAServiceAreDecidedTogether: a new slice with an endpoint on this node changes the other slice of
// the service.
func TestSlicesOfAServiceAreDecidedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		c.annotate("web", "topologyKeys", `["kubernetes.io/hostname","*"]`)
		server := serverOf(t, "EndpointSlice", "discovery.k8s.io/v1", "endpointslices", sliceOf("web-abc", "web", "node1"))
		f := filterOf(t, c, "node0", topology.Ordered())
		defer f.Close()
		go func() {
			time.Sleep(10 * time.Second)
			server.Set(object(t, sliceOf("web-def", "web", "node0")))
			time.Sleep(10 * time.Second)
			server.Delete("shop", "web-def")
		}()
		lines := strings.Split(watch(t, f.Filter(server), slicesPath+"?watch=1"), "\n")
		if len(lines) != 5 {
			t.Fatalf("%q", lines)
		}
		slices.Sort(lines[1:3]) // of one change
		if got, want := strings.Join(lines, "\n"), `ADDED web-abc 10.0.0.1
ADDED web-def 10.0.0.0
MODIFIED web-abc
DELETED web-def 10.0.0.0
MODIFIED web-abc 10.0.0.1`; got != want {
			t.Errorf("%s\nwant\n%s", got, want)
		}
	})
}

// TestEndpoints: the addresses of Endpoints are restricted too, and the node's gateway replaces the API
// server.
func TestEndpoints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		c.annotate("web", "topologyKeys", `["zone1"]`)
		server := serverOf(t, "Endpoints", "v1", "endpoints",
			`{"kind":"Endpoints","apiVersion":"v1","metadata":{"name":"web","namespace":"shop"},"subsets":[
				{"addresses":[{"ip":"10.0.0.1","nodeName":"node1"},{"ip":"10.0.0.0","nodeName":"node0"}],"notReadyAddresses":[{"ip":"10.0.0.3","nodeName":"node3"},{"ip":"10.0.0.9"}],"ports":[{"port":8}]},
				{"addresses":[{"ip":"10.0.0.2","nodeName":"node2"}],"ports":[{"port":9}]}]}`,
			`{"kind":"Endpoints","apiVersion":"v1","metadata":{"name":"kubernetes","namespace":"default","annotations":{"superedge.io/local-endpoint":"127.0.0.1","superedge.io/local-port":"10003"}},"subsets":[{"addresses":[{"ip":"192.0.2.10"}],"ports":[{"port":6443}]}]}`)
		f := filterOf(t, c, "node0", topology.SuperEdge())
		defer f.Close()
		if got, want := watch(t, f.Filter(server), endpointsPath+"?watch=1"), `ADDED kubernetes [127.0.0.1]:3
ADDED web [10.0.0.0 not 10.0.0.3]:8`; got != want {
			t.Errorf("%s\nwant\n%s", got, want)
		}
	})
}

// TestEndpointsWhole: the rest of an object is unchanged if endpoints are removed, from any of its
// lists. The view's versions are longer than the server's.
func TestEndpointsWhole(t *testing.T) {
	here, there := `{"ip":"10.0.0.0","nodeName":"node0"}`, `{"ip":"10.0.0.1","nodeName":"node1"}`
	for _, ready := range []string{here, here + "," + there, there} {
		for _, unready := range []string{here, here + "," + there, there} {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster()
				c.annotate("web", "topologyKeys", `["zone1"]`)
				server := serverOf(t, "Endpoints", "v1", "endpoints",
					`{"kind":"Endpoints","apiVersion":"v1","metadata":{"name":"web","namespace":"shop","labels":{"app":"web"}},"subsets":[{"addresses":[`+ready+`],"notReadyAddresses":[`+unready+`],"ports":[{"port":8}]}]}`)
				f := filterOf(t, c, "node0", topology.SuperEdge())
				defer f.Close()
				want := "ADDED web"
				if lists := []string{strings.Repeat("10.0.0.0 ", strings.Count(ready, here)), strings.Repeat("not 10.0.0.0 ", strings.Count(unready, here))}; lists[0]+lists[1] != "" {
					want += " [" + strings.TrimSpace(lists[0]+lists[1]) + "]:8"
				}
				if got := watch(t, f.Filter(server), endpointsPath+"?watch=1"); got != want {
					t.Errorf("ready %s, unready %s: %s, want %s", ready, unready, got, want)
				}
			})
		}
	}
}

// TestItemsOfNoKind: no endpoint is shown of a list whose kind comes after its items, or is not the
// requested one.
func TestItemsOfNoKind(t *testing.T) {
	slice := strings.Replace(sliceOf("web-abc", "web", "node1"), `"kind":"EndpointSlice","apiVersion":"discovery.k8s.io/v1",`, "", 1)
	for _, list := range []string{
		`{"apiVersion":"discovery.k8s.io/v1","items":[` + slice + `],"kind":"EndpointSliceList","metadata":{"resourceVersion":"5"}}`,
		`{"kind":"OtherList","apiVersion":"discovery.k8s.io/v1","metadata":{"resourceVersion":"5"},"items":[` + slice + `]}`,
	} {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster()
			c.annotate("web", "topologyKeys", `["zone1"]`)
			f := filterOf(t, c, "node0", topology.SuperEdge())
			defer f.Close()
			h := f.Filter(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				switch q := r.URL.Query(); {
				case q.Get("sendInitialEvents") == "true":
					w.WriteHeader(http.StatusUnprocessableEntity)
				case q.Get("watch") == "true":
					w.WriteHeader(http.StatusOK)
					_ = http.NewResponseController(w).Flush()
					<-r.Context().Done()
				default:
					_, _ = w.Write([]byte(list))
				}
			}))
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest("GET", slicesPath, nil))
			if strings.Contains(w.Body.String(), "10.0.0.") {
				t.Errorf("%d %s", w.Code, w.Body)
			}
		})
	}
}

// TestOthersPass: requests for other resources, nodes and services included, reach the server.
func TestOthersPass(t *testing.T) {
	f := filterOf(t, newCluster(), "node0", topology.SuperEdge())
	defer f.Close()
	passed := 0
	h := f.Filter(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { passed++ }))
	for _, target := range []string{"/api/v1/nodes?watch=1", "/api/v1/services", "/api/v1/namespaces/shop/pods/p/log", "/healthz", "/apis/x/v1/endpointslices"} {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", target, nil))
	}
	if passed != 5 {
		t.Errorf("%d requests have passed", passed)
	}
}

// TestExplain: each endpoint has a decision with a reason.
func TestExplain(t *testing.T) {
	c := newCluster()
	c.annotate("web", "topologyKeys", `["zone1"]`)
	f := filterOf(t, c, "node0", topology.SuperEdge())
	defer f.Close()
	var o watchcodec.Object
	if err := o.Parse(watchcodec.JSON, "", "", []byte(sliceOf("web-abc", "web", "node0", "node1", "node9"))); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range f.Explain([]*watchcodec.Object{&o}) {
		got = append(got, e.Object+" "+e.Endpoint.Address+": "+e.Decision.Why)
	}
	if want := []string{
		"web-abc 10.0.0.0: zone1=unit1 here and on node0",
		"web-abc 10.0.0.1: zone1 is unit1 here and unit2 on node1",
		"web-abc 10.0.0.9: its node, node9, is unknown",
	}; !slices.Equal(got, want) {
		t.Errorf("%q\nwant\n%q", got, want)
	}
}

// TestWatch: a Watch follows nodes and services, and calls its subscribers only for changes of the properties
// that it holds.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := func(name, unit, status string) string {
			return `{"kind":"Node","apiVersion":"v1","metadata":{"name":"` + name + `","labels":{"zone1":"` + unit + `"}},"status":{"x":"` + status + `"}}`
		}
		service := func(keys, other string) string {
			return `{"kind":"Service","apiVersion":"v1","metadata":{"name":"web","namespace":"shop","annotations":{"topologyKeys":"` + keys + `","other":"` + other + `"}},"spec":{"trafficDistribution":"PreferSameZone"}}`
		}
		nodes := serverOf(t, "Node", "v1", "nodes", node("node0", "a", ""), node("node1", "b", ""))
		services := serverOf(t, "Service", "v1", "services", service("[]", "1"))
		mux := http.NewServeMux()
		mux.Handle("/api/v1/nodes", nodes)
		mux.Handle("/api/v1/services", services)
		policy := topology.SuperEdge()
		policy.Spec = true
		w, err := topology.NewWatch(topology.WatchOptions{Handler: mux, Policy: policy})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		var mu sync.Mutex
		var names []string
		defer w.Subscribe(func(name string) {
			mu.Lock()
			defer mu.Unlock()
			names = append(names, name)
		})()
		time.Sleep(time.Second)
		if labels, ok := w.Labels("node1"); !ok || labels["zone1"] != "b" || !w.Synced() {
			t.Errorf("node1: %v %v, synced: %v", labels, ok, w.Synced())
		}
		if s, ok := w.Service("shop", "web"); !ok || s.Annotations["topologyKeys"] != "[]" || s.Annotations["other"] != "" || s.TrafficDistribution != "PreferSameZone" {
			t.Errorf("web: %+v %v", s, ok)
		}
		mu.Lock()
		names = nil
		mu.Unlock()
		for _, text := range []string{node("node0", "a", "beat"), node("node1", "c", "beat")} {
			nodes.Set(object(t, text))
		}
		services.Set(object(t, service("[]", "2")))
		services.Set(object(t, service("[1]", "2")))
		nodes.Delete("", "node0")
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		slices.Sort(names)
		if want := []string{"node/node0", "node/node1", "service/shop/web"}; !slices.Equal(names, want) {
			t.Errorf("called with %q, want %q", names, want)
		}
		if _, ok := w.Labels("node0"); ok {
			t.Error("node0 is still there")
		}
	})
}

// TestWrongOptions: options that are not complete are errors.
func TestWrongOptions(t *testing.T) {
	for _, o := range []topology.Options{{}, {Node: "n"}, {Node: "n", Inputs: newCluster()}, {Inputs: newCluster(), Policy: topology.SuperEdge()}} {
		if _, err := topology.New(o); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
	if _, err := topology.NewWatch(topology.WatchOptions{}); err == nil {
		t.Error("a Watch without options is accepted")
	}
}
