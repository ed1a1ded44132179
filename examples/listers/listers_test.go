package listers_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/culvert-go/culvert/examples/listers"
	"github.com/culvert-go/culvert/filters/topology"
)

// TestInputs: nodes and services are those of the informers, and each relevant change is reported
// once.
func TestInputs(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"zone1": "a"}}}
	zone := "PreferSameZone"
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", Annotations: map[string]string{"topologyKeys": "[]"}}, Spec: corev1.ServiceSpec{TrafficDistribution: &zone}}
	client := fake.NewClientset(node, service)
	factory := informers.NewSharedInformerFactory(client, 0)
	var inputs topology.Inputs
	inputs, err := listers.New(t.Context(), factory)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var changed []string
	await := func(want ...string) {
		t.Helper()
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		var got []string
		for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); <-tick.C {
			mu.Lock()
			got = slices.Sorted(slices.Values(changed))
			mu.Unlock()
			if slices.Equal(got, want) {
				return
			}
		}
		t.Fatalf("changes %q, want %q", got, want)
	}
	defer inputs.Subscribe(func(name string) {
		mu.Lock()
		defer mu.Unlock()
		changed = append(changed, name)
	})()
	factory.Start(t.Context().Done())
	await("", "node/n", "service/shop/web")
	if labels, ok := inputs.Labels("n"); !ok || labels["zone1"] != "a" || !inputs.Synced() {
		t.Errorf("n: %v %v, synced %v", labels, ok, inputs.Synced())
	}
	if _, ok := inputs.Labels("other"); ok {
		t.Error("there is no other node")
	}
	if s, ok := inputs.Service("shop", "web"); !ok || s.Annotations["topologyKeys"] != "[]" || s.TrafficDistribution != zone {
		t.Errorf("web: %+v %v", s, ok)
	}
	node.Status.Phase = corev1.NodeRunning // a heartbeat
	if _, err := client.CoreV1().Nodes().Update(t.Context(), node, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	node = node.DeepCopy()
	node.Labels["zone1"] = "b"
	if _, err := client.CoreV1().Nodes().Update(t.Context(), node, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := client.CoreV1().Services("shop").Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	await("", "node/n", "node/n", "service/shop/web", "service/shop/web")
}
