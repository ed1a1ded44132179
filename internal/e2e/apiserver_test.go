package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
	"github.com/culvert-go/culvert/watchcodec"
)

// gatewayOfKubernetes stands in front of a real apiserver: it hides pods with the label
// hidden=yes, strips managedFields, and lets clients write and have Tables.
func gatewayOfKubernetes(t *testing.T, apiserver string) *httptest.Server {
	t.Helper()
	group, err := upstream.New(upstream.Options{Scheme: "https", TLSConfig: anyCertificate(), Protocol: upstream.HTTP2}, upstream.Target{Addr: apiserver})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { group.Close() })
	p, err := proxy.New(proxy.Options{Upstream: group})
	if err != nil {
		t.Fatal(err)
	}
	hide := hidingPods(t, watchcodec.FilterOptions{AllowWrites: true, Tables: true})
	gateway := httptest.NewUnstartedServer(filters.NewChain(hide).Then(p))
	gateway.EnableHTTP2 = true
	gateway.StartTLS() // kubectl sends no token without
	t.Cleanup(gateway.Close)
	return gateway
}

// TestRealAPIServer starts etcd and kube-apiserver and lets real informers and kubectl watch
// them through the filter.
func TestRealAPIServer(t *testing.T) {
	apiserver := startKubernetes(t)
	gateway := gatewayOfKubernetes(t, apiserver)
	direct, err := kubernetes.NewForConfig(&rest.Config{Host: "https://" + apiserver, BearerToken: adminToken, TLSClientConfig: rest.TLSClientConfig{Insecure: true}, QPS: 1000, Burst: 1000})
	if err != nil {
		t.Fatal(err)
	}
	for _, contentType := range []string{"application/json", "application/vnd.kubernetes.protobuf"} {
		t.Run("an informer with "+contentType, func(t *testing.T) { realInformer(t, direct, gateway, contentType) })
	}
	for output, line := range map[string]string{"": "%s", "wide": "%s", "json": `"name": "%s"`} {
		t.Run("kubectl get -w -o "+output, func(t *testing.T) { realKubectl(t, direct, gateway, output, line) })
	}
}

// smallPod is one that a real server takes.
func smallPod(name string, hidden bool) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Labels: map[string]string{"hidden": map[bool]string{true: "yes", false: "no"}[hidden]}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "registry.example/c"}}},
	}
}

// setPod creates a pod or gives it its label.
func setPod(t *testing.T, client kubernetes.Interface, name string, hidden bool) {
	t.Helper()
	pods := client.CoreV1().Pods("default")
	p := smallPod(name, hidden)
	_, err := pods.Create(t.Context(), p, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		label := fmt.Sprintf(`{"metadata":{"labels":{"hidden":%q}}}`, p.Labels["hidden"])
		_, err = pods.Patch(t.Context(), name, types.MergePatchType, []byte(label), metav1.PatchOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// realInformer compares the store of an informer behind the filter with what the server
// has, again and again while pods come, go, and change sides.
func realInformer(t *testing.T, direct kubernetes.Interface, gateway *httptest.Server, contentType string) {
	behind, err := kubernetes.NewForConfig(&rest.Config{Host: gateway.URL, BearerToken: adminToken, TLSClientConfig: rest.TLSClientConfig{Insecure: true}, ContentConfig: rest.ContentConfig{ContentType: contentType, AcceptContentTypes: contentType + ",application/json"}})
	if err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	now := context.Background()
	none := int64(0)
	change := func() {
		name := fmt.Sprintf("pod-%02d", rnd.IntN(20))
		if rnd.IntN(5) == 0 {
			_ = direct.CoreV1().Pods("default").Delete(now, name, metav1.DeleteOptions{GracePeriodSeconds: &none})
			return
		}
		setPod(t, direct, name, rnd.IntN(2) == 0)
	}
	for range 20 {
		change()
	}
	informer, h := startInformer(t, behind)
	for round := range 10 {
		for range 20 {
			change()
		}
		if round == 5 {
			gateway.CloseClientConnections()
		}
		all, err := direct.CoreV1().Pods("").List(now, metav1.ListOptions{LabelSelector: "hidden!=yes"})
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]int64{}
		for _, p := range all.Items {
			want[p.Name] = p.Generation
		}
		compareStores(t, informer, h, want)
	}
}

// realKubectl watches with kubectl, as a Table for instance, while a pod changes sides.
func realKubectl(t *testing.T, direct kubernetes.Interface, gateway *httptest.Server, output, line string) {
	prefix := "k" + output + "-"
	setPod(t, direct, prefix+"seen", false)
	setPod(t, direct, prefix+"hidden", true)
	args := []string{"get", "pods", "-n", "default", "-w", "--token", adminToken, "--server", gateway.URL, "--insecure-skip-tls-verify"}
	if output != "" {
		args = append(args, "-o", output)
	}
	r, seen := startWatching(t, kubectl(t, gateway.Listener.Addr().String(), "true", args...))
	expect(t, r, fmt.Sprintf(line, prefix+"seen"))
	setPod(t, direct, prefix+"late-hidden", true)
	setPod(t, direct, prefix+"late", false)
	expect(t, r, fmt.Sprintf(line, prefix+"late"))
	if strings.Contains(seen.String(), prefix+"hidden") || strings.Contains(seen.String(), prefix+"late-hidden") || strings.Contains(seen.String(), "managedFields") {
		t.Errorf("kubectl shows what is hidden:\n%s", seen)
	}
	if output == "wide" && !strings.Contains(seen.String(), "NOMINATED NODE") {
		t.Errorf("kubectl has not had the server's columns:\n%s", seen)
	}
	setPod(t, direct, prefix+"hidden", false)
	expect(t, r, fmt.Sprintf(line, prefix+"hidden"))
}
