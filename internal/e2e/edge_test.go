package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// edgeCluster is the cluster of the story: an apiserver, and nodes with a gateway and a
// kube-proxy each.
type edgeCluster struct {
	t      *testing.T
	client kubernetes.Interface
	port   int
	dir    string
	*network
	stopGateway, stopProxy map[string]func()
}

const webService = "10.96.0.100:80"

// TestEdgeKeepsTrafficInTheUnit is the story of SuperEdge's article: the real kube-proxy of
// each node, through the node's own gateway, sends connections to a service to the pods
// of the node's unit only, and follows labels as they change, though no slice is written.
func TestEdgeKeepsTrafficInTheUnit(t *testing.T) {
	c := startEdgeCluster(t)
	node1, node2 := c.nodes[1], c.nodes[2]
	expect := func(when string, wants ...string) {
		t.Helper()
		for i, want := range wants {
			c.nodes[i].expect(t, webService, want)
		}
		if t.Failed() {
			t.Fatal(when)
		}
	}
	expect("at the begin", "node0", "node1 node2", "node1 node2")
	c.debugPage()

	c.relabel(node2, "nodeunit1")
	expect("node2 is in the unit of node0", "node0 node2", "node1", "node0 node2")

	if err := c.client.CoreV1().Services("shop").Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	expect("the service is gone", "none", "none", "none")
	c.createService()
	expect("the service is back", "node0 node2", "node1", "node0 node2")

	c.stopGateway[node1.name]()
	c.relabel(node2, "nodeunit2")
	expect("the gateway of node1 is down", "node0", "node1", "node1 node2")
	c.startGateway(node1)
	expect("the gateway of node1 is back", "node0", "node1 node2", "node1 node2")

	// Cut from the apiserver, what was known last is served, to a kube-proxy too that starts
	// from nothing. The gateway has to know it: the running kube-proxy requests nodes, services
	// and slices anew at times of their own, and needs no nodes to send connections.
	awaitViews(t, node1)
	node1.nft(t, "add table inet cut"+
		"; add chain inet cut out { type filter hook output priority 0; }; add rule inet cut out ip daddr "+c.host+" drop"+
		"; add chain inet cut in { type filter hook input priority 0; }; add rule inet cut in ip saddr "+c.host+" drop")
	c.stopProxy[node1.name]()
	node1.nft(t, "flush table ip kube-proxy; delete table ip kube-proxy")
	node1.expect(t, webService, "none")
	c.startProxy(node1)
	c.relabel(node2, "nodeunit1")
	expect("node1 is cut off", "node0 node2", "node1 node2", "node0 node2")
	node1.nft(t, "delete table inet cut")
	expect("node1 is not cut off any more", "node0 node2", "node1", "node0 node2")
}

func (n *node) nft(t *testing.T, rules string) {
	t.Helper()
	if out, err := n.command(t.Context(), "nft", rules).CombinedOutput(); err != nil {
		t.Fatalf("nft %s: %v: %s", rules, err, out)
	}
}

func startEdgeCluster(t *testing.T) *edgeCluster {
	t.Helper()
	c := &edgeCluster{t: t, dir: t.TempDir(), stopGateway: map[string]func(){}, stopProxy: map[string]func(){}}
	c.port = startKubernetesOn(t, "0.0.0.0")
	c.network = startNetwork(t, "node0", "node1", "node2")
	var err error
	c.client, err = kubernetes.NewForConfig(&rest.Config{Host: fmt.Sprintf("https://127.0.0.1:%d", c.port), BearerToken: adminToken, TLSClientConfig: rest.TLSClientConfig{Insecure: true}})
	if err != nil {
		t.Fatal(err)
	}
	c.createObjects()
	for _, n := range c.nodes {
		n.startPod(t, 8080)
		c.startGateway(n)
		c.startProxy(n)
	}
	return c
}

// createObjects makes nodes, the service with its annotation, and one slice with an
// endpoint on each node.
func (c *edgeCluster) createObjects() {
	c.t.Helper()
	ctx := c.t.Context()
	_, err := c.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, metav1.CreateOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	yes, port, name, protocol := true, int32(8080), "", corev1.ProtocolTCP
	slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Name: "web-abcde", Labels: map[string]string{discoveryv1.LabelServiceName: "web"}},
		AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: &name, Port: &port, Protocol: &protocol}}}
	for i, n := range c.nodes {
		unit := map[bool]string{true: "nodeunit1", false: "nodeunit2"}[i == 0]
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.name, Labels: map[string]string{"zone1": unit, "kubernetes.io/hostname": n.name}}}
		node, err := c.client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
		if err != nil {
			c.t.Fatal(err)
		}
		node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: n.address}}
		if _, err := c.client.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{}); err != nil {
			c.t.Fatal(err)
		}
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{n.pod}, NodeName: &n.name, Conditions: discoveryv1.EndpointConditions{Ready: &yes}})
	}
	c.createService()
	if _, err := c.client.DiscoveryV1().EndpointSlices("shop").Create(ctx, slice, metav1.CreateOptions{}); err != nil {
		c.t.Fatal(err)
	}
}

// createService makes one without a selector, as SuperEdge's ServiceGrid annotates it.
func (c *edgeCluster) createService() {
	c.t.Helper()
	address, port, _ := strings.Cut(webService, ":")
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web", Annotations: map[string]string{"topologyKeys": `["zone1"]`}}, Spec: corev1.ServiceSpec{ClusterIP: address}}
	var number int32
	fmt.Sscan(port, &number)
	service.Spec.Ports = []corev1.ServicePort{{Port: number, Protocol: corev1.ProtocolTCP}}
	if _, err := c.client.CoreV1().Services("shop").Create(c.t.Context(), service, metav1.CreateOptions{}); err != nil {
		c.t.Fatal(err)
	}
}

func (c *edgeCluster) relabel(n *node, unit string) {
	c.t.Helper()
	patch := fmt.Sprintf(`{"metadata":{"labels":{"zone1":%q}}}`, unit)
	if _, err := c.client.CoreV1().Nodes().Patch(c.t.Context(), n.name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		c.t.Fatal(err)
	}
}

// kubeconfigFor writes a kubeconfig.
func (c *edgeCluster) kubeconfigFor(name, server string) (file string) {
	file = filepath.Join(c.dir, name)
	write(c.t, file, fmt.Appendf(nil, `{"apiVersion": "v1", "kind": "Config", "current-context": "c",
"contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
"clusters": [{"name": "c", "cluster": {"server": %q%s}}],
"users": [{"name": "u", "user": {"token": %q}}]}
`, server, map[bool]string{true: `, "insecure-skip-tls-verify": true`}[strings.HasPrefix(server, "https:")], proxyToken))
	return file
}

// startGateway starts a node's gateway: on node0 as SuperEdge's wrapper runs, plain and with
// credentials for those who have none, elsewhere with TLS and the caller's own.
func (c *edgeCluster) startGateway(n *node) {
	c.t.Helper()
	program, err := edgeProgram()
	if err != nil {
		c.t.Fatal(err)
	}
	args := []string{"-kubeconfig", c.kubeconfigFor("gateway", fmt.Sprintf("https://%s:%d", c.host, c.port)), "-node", n.name, "-admin", n.address + ":10004"}
	if c.plain(n) {
		args = append(args, "-share")
	} else {
		for name, content := range certificates() {
			write(c.t, filepath.Join(c.dir, name), []byte(content))
		}
		args = append(args, "-tls-cert", filepath.Join(c.dir, "first.pem"), "-tls-key", filepath.Join(c.dir, "first.key"))
	}
	_, c.stopGateway[n.name] = n.start(c.t, nil, program, args...)
	c.t.Cleanup(c.stopGateway[n.name])
	awaitOK(c.t, "http://"+n.address+":10004/readyz")
}

func (c *edgeCluster) plain(n *node) bool { return n == c.nodes[0] }

func (c *edgeCluster) startProxy(n *node) {
	c.t.Helper()
	program, err := kubeProgram()
	if err != nil {
		c.t.Fatal(err)
	}
	scheme := map[bool]string{true: "http", false: "https"}[c.plain(n)]
	_, c.stopProxy[n.name] = n.start(c.t, nil, program, "kube-proxy", "--kubeconfig", c.kubeconfigFor("proxy-"+n.name, scheme+"://127.0.0.1:10003"),
		"--hostname-override", n.name, "--proxy-mode=nftables", "--cluster-cidr=10.244.0.0/16", "--conntrack-max-per-core=0",
		"--healthz-bind-address=127.0.0.1:10256", "--metrics-bind-address=127.0.0.1:10249", "-v=1")
}

func awaitOK(t *testing.T, url string) {
	t.Helper()
	await(t, url, func(string) bool { return true })
}

// awaitViews waits until a node's gateway can serve what a kube-proxy needs to start.
func awaitViews(t *testing.T, n *node) {
	t.Helper()
	await(t, "http://"+n.address+":10004/metrics", func(metrics string) bool {
		synced := map[string]bool{}
		for line := range strings.Lines(metrics) {
			for _, path := range []string{"/api/v1/nodes", "/api/v1/services", "/apis/discovery.k8s.io/v1/endpointslices"} {
				if strings.HasPrefix(line, "edge_view_synced{") && strings.HasSuffix(line, fmt.Sprintf("path=%q} 1\n", path)) {
					synced[path] = true
				}
			}
		}
		return len(synced) == 3
	})
}

// await waits until there is a page, and it is the one that is waited for.
func await(t *testing.T, url string, is func(text string) bool) {
	t.Helper()
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true, DialContext: (&net.Dialer{Timeout: time.Second}).DialContext}}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	var last string
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); <-tick.C {
		resp, err := client.Get(url)
		if err != nil {
			last = err.Error()
			continue
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		last = fmt.Sprintf("%s %v: %s", resp.Status, err, text)
		if err == nil && resp.StatusCode == http.StatusOK && is(string(text)) {
			return
		}
	}
	t.Fatalf("%s: %s", url, last)
}

// debugPage looks at the page that explains, with Chromium, and keeps a picture of it where
// CULVERT_SCREENSHOTS names a folder.
func (c *edgeCluster) debugPage() {
	c.t.Helper()
	b := startBrowser(c.t)
	text := b.visit(c.t, "http://"+c.nodes[0].address+":10004/debug/topology?service=shop/web")
	for _, want := range []string{"1 of 3 endpoints are kept", "zone1=nodeunit1 here and on node0", "zone1 is nodeunit1 here and nodeunit2 on node1"} {
		if !strings.Contains(text, want) {
			c.t.Errorf("the page does not say %q:\n%s", want, text)
		}
	}
	var picture []byte
	b.run(c.t, chromedp.FullScreenshot(&picture, 100))
	if len(picture) == 0 {
		c.t.Error("no picture")
	}
	if dir := os.Getenv("CULVERT_SCREENSHOTS"); dir != "" {
		write(c.t, filepath.Join(dir, "edge.png"), picture)
	}
}
