package e2e

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/culvert-go/culvert/watchcodec"
)

// TestResumedWatchOfTheAPIServer: a client that resumes a watch of the real apiserver receives events of the
// objects that it has seen, in each form that a watch has, and of no others.
func TestResumedWatchOfTheAPIServer(t *testing.T) {
	server := "https://" + startKubernetes(t)
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server, BearerToken: adminToken, TLSClientConfig: rest.TLSClientConfig{Insecure: true}})
	if err != nil {
		t.Fatal(err)
	}
	maps := client.CoreV1().ConfigMaps("default")
	var had, unseen *corev1.ConfigMap
	for name, object := range map[string]**corev1.ConfigMap{"had": &had, "unseen": &unseen} {
		*object, err = maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"shown": map[bool]string{true: "yes", false: "no"}[name == "had"]}}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	list, err := maps.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	unseen.Data = map[string]string{"changed": "once"}
	had.Labels["shown"] = "no"
	for _, object := range []*corev1.ConfigMap{unseen, had} {
		if _, err := maps.Update(t.Context(), object, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	filter, err := watchcodec.NewFilter(watchcodec.FilterOptions{Tables: true, Rewriter: func(*http.Request, watchcodec.Request) watchcodec.Rewriter {
		return func(o *watchcodec.Object) (bool, error) {
			label, _ := o.Label("shown")
			return string(label) == "yes", nil
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	target, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	transport := &http.Transport{TLSClientConfig: anyCertificate()}
	defer transport.CloseIdleConnections()
	proxy.Transport, proxy.FlushInterval = transport, -1
	gateway := httptest.NewServer(filter(proxy))
	defer gateway.Close()
	for _, accept := range []string{
		"application/json",
		"application/vnd.kubernetes.protobuf",
		"application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
		"application/json;as=Table;v=v1;g=meta.k8s.io",
	} {
		for _, path := range []string{"/api/v1/namespaces/default/configmaps?watch=1", "/api/v1/watch/configmaps?fieldSelector=metadata.namespace%3Ddefault"} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, gateway.URL+path+"&timeoutSeconds=2&resourceVersion="+list.ResourceVersion, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Accept", accept)
			r.Header.Set("Authorization", "Bearer "+adminToken)
			response, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(response.Body)
			response.Body.Close()
			if text := string(body); err != nil || strings.Count(text, "DELETED") != 1 || !strings.Contains(text, "had") || strings.Contains(text, "unseen") || strings.Contains(text, "ERROR") {
				t.Errorf("%s as %s: %s %q %v", path, accept, response.Status, body, err)
			}
		}
	}
}
