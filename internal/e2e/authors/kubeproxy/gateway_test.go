package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/remotecommand"

	"github.com/culvert-go/culvert/internal/leaktest"
)

// TestGateway runs everything against one API server, which takes long to start.
func TestGateway(t *testing.T) {
	leaktest.Check(t)
	c := start(t)
	t.Run("who", c.testWho)
	t.Run("objects", c.testObjects)
	for _, contentType := range []string{"application/json", "application/vnd.kubernetes.protobuf"} {
		t.Run("informers, "+contentType, func(t *testing.T) { c.testInformers(t, contentType) })
	}
	t.Run("exec", c.testExec)
	t.Run("audit", c.testAudit)
	t.Run("shutdown", c.testShutdown)
}

// testWho checks who may do anything.
func (c *cluster) testWho(t *testing.T) {
	for token, refused := range map[string]func(error) bool{
		"":            apierrors.IsUnauthorized,
		"mallory":     apierrors.IsUnauthorized,
		"carol-token": apierrors.IsForbidden, // by RBAC
	} {
		if _, err := c.client(t, token).CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{}); !refused(err) {
			t.Errorf("%q: %v", token, err)
		}
	}
	config := c.config("carol-token", "application/json")
	config.Impersonate = rest.ImpersonationConfig{UserName: "admin", Groups: []string{"system:masters"}, Extra: map[string][]string{"a": {"b"}}}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `"carol"`) {
		t.Errorf("impersonation: %v", err)
	}
	if _, err := c.client(t, "carol-token").Discovery().ServerVersion(); err != nil {
		t.Error(err)
	}
}

// testObjects checks what a user sees and changes by requests for single objects and lists.
func (c *cluster) testObjects(t *testing.T) {
	pods := c.admin.CoreV1().Pods("default")
	for name, team := range map[string]string{"red-1": "red", "red-2": "red", "blue-1": "blue", "none": ""} {
		if _, err := pods.Create(t.Context(), pod(name, team), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	alice := c.client(t, "alice-token").CoreV1().Pods("default")
	list, err := alice.List(t.Context(), metav1.ListOptions{Limit: 1})
	if err != nil || list.Continue != "" {
		t.Fatal(list.Continue, err)
	}
	if got := names(list); !slices.Equal(got, []string{"red-1", "red-2"}) {
		t.Error(got)
	}
	if _, err := alice.Get(t.Context(), "red-1", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	label := []byte(`{"metadata":{"labels":{"more":"yes"}}}`)
	if _, err := alice.Patch(t.Context(), "red-1", types.MergePatchType, label, metav1.PatchOptions{}); err != nil {
		t.Error(err)
	}
	if _, err := alice.Get(t.Context(), "blue-1", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Error("get:", err)
	}
	if _, err := alice.Patch(t.Context(), "blue-1", types.MergePatchType, label, metav1.PatchOptions{}); !apierrors.IsForbidden(err) {
		t.Error("patch:", err)
	}
	if err := alice.Delete(t.Context(), "blue-1", metav1.DeleteOptions{}); !apierrors.IsForbidden(err) {
		t.Error("delete:", err)
	}
	if err := alice.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Error("deletecollection:", err)
	}
	if _, err := alice.GetLogs("blue-1", &corev1.PodLogOptions{}).DoRaw(t.Context()); !apierrors.IsForbidden(err) {
		t.Error("log:", err)
	}
	if err := alice.Delete(t.Context(), "red-2", metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
		t.Error("delete:", err)
	}
	if all, err := pods.List(t.Context(), metav1.ListOptions{}); err != nil || !slices.Equal(names(all), []string{"blue-1", "none", "red-1"}) {
		t.Error(names(all), err)
	}
}

func names(list *corev1.PodList) []string {
	var names []string
	for _, p := range list.Items {
		names = append(names, p.Name)
	}
	slices.Sort(names)
	return names
}

// testInformers lets informers of two users follow configmaps and pods that come, go and change teams.
func (c *cluster) testInformers(t *testing.T, contentType string) {
	maps := c.admin.CoreV1().ConfigMaps("default")
	prefix := fmt.Sprintf("i%d-", len(contentType))
	views := map[string]*follower{}
	for _, u := range users[:2] {
		client, err := kubernetes.NewForConfig(c.config(u.Name+"-token", contentType))
		if err != nil {
			t.Fatal(err)
		}
		views[u.Name] = follow(t, client, prefix)
	}
	set := func(name, team string) {
		t.Helper()
		m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: prefix + name, Namespace: "default", Labels: map[string]string{"team": team}}, Data: map[string]string{"for": team}}
		_, err := maps.Update(t.Context(), m, metav1.UpdateOptions{})
		if apierrors.IsNotFound(err) {
			_, err = maps.Create(t.Context(), m, metav1.CreateOptions{})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	set("a", "red")
	set("b", "blue")
	set("c", "green")
	views["alice"].await(t, map[string]string{"a": "red"})
	views["bob"].await(t, map[string]string{"a": "red", "b": "blue"})
	set("a", "blue")  // alice sees it no more
	set("b", "red")   // she sees it now
	set("c", "green") // nothing for either
	views["alice"].await(t, map[string]string{"b": "red"})
	views["bob"].await(t, map[string]string{"a": "blue", "b": "red"})
	if err := maps.Delete(t.Context(), prefix+"b", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	set("d", "red")
	views["alice"].await(t, map[string]string{"d": "red"})
	views["bob"].await(t, map[string]string{"a": "blue", "d": "red"})
}

// follower is an informer of configmaps.
type follower struct {
	store   cache.Store
	changed chan struct{}
	prefix  string
}

func follow(t *testing.T, client kubernetes.Interface, prefix string) *follower {
	t.Helper()
	f := &follower{changed: make(chan struct{}, 1000), prefix: prefix}
	factory := informers.NewSharedInformerFactory(client, 0)
	informer := factory.Core().V1().ConfigMaps().Informer()
	f.store = informer.GetStore()
	change := func(any) { f.changed <- struct{}{} }
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: change, UpdateFunc: func(_, o any) { change(o) }, DeleteFunc: change}); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	factory.Start(stop)
	t.Cleanup(func() {
		close(stop)
		factory.Shutdown()
	})
	if !cache.WaitForCacheSync(t.Context().Done(), informer.HasSynced) {
		t.Fatal("the informer has not listed")
	}
	return f
}

// await waits until the informer has these objects and no others.
func (f *follower) await(t *testing.T, want map[string]string) {
	t.Helper()
	for {
		got := map[string]string{}
		for _, o := range f.store.List() {
			if m := o.(*corev1.ConfigMap); strings.HasPrefix(m.Name, f.prefix) {
				got[strings.TrimPrefix(m.Name, f.prefix)] = m.Data["for"]
			}
		}
		if maps.Equal(got, want) {
			return
		}
		select {
		case <-f.changed:
		case <-t.Context().Done():
			t.Fatal(got, want)
		}
	}
}

// testExec checks who may run commands where. No node runs the pods: the API server says so to those who may.
func (c *cluster) testExec(t *testing.T) {
	for _, test := range []struct{ token, pod, want string }{
		{"bob-token", "red-1", "may not run commands"},
		{"alice-token", "blue-1", "does not see"},
		{"alice-token", "red-1", "does not have a host assigned"},
	} {
		config := c.config(test.token, "application/json")
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		u := client.CoreV1().RESTClient().Post().Resource("pods").Namespace("default").Name(test.pod).SubResource("exec").
			VersionedParams(&corev1.PodExecOptions{Container: "c", Command: []string{"echo", "a", "a"}, Stdout: true}, scheme.ParameterCodec).URL()
		overWebSocket, err := remotecommand.NewWebSocketExecutor(config, http.MethodGet, u.String())
		if err != nil {
			t.Fatal(err)
		}
		overSPDY, err := remotecommand.NewSPDYExecutor(config, http.MethodPost, u)
		if err != nil {
			t.Fatal(err)
		}
		for name, executor := range map[string]remotecommand.Executor{"WebSocket": overWebSocket, "SPDY": overSPDY} {
			err := executor.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdout: new(strings.Builder)})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s, %s in %s: %v, want %q", name, test.token, test.pod, err, test.want)
			}
		}
	}
}

// testAudit checks what the log says of the requests of the other tests.
func (c *cluster) testAudit(t *testing.T) {
	type record struct {
		User, Verb, Resource, Subresource, Namespace, Name, Error string
		Status                                                    int
	}
	var records []record
	for _, line := range c.log.all() {
		var r record
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		r.Error, _, _ = strings.Cut(r.Error, ":")
		records = append(records, r)
	}
	for _, want := range []record{
		{"", "list", "pods", "", "default", "", "", 401},
		{"carol", "list", "pods", "", "default", "", "", 403},
		{"alice", "list", "pods", "", "default", "", "", 200},
		{"alice", "get", "pods", "", "default", "blue-1", "", 404},
		{"alice", "delete", "pods", "", "default", "blue-1", "forbidden", 403},
		{"alice", "delete", "pods", "", "default", "red-2", "", 200},
		{"bob", "get", "pods", "exec", "default", "red-1", "forbidden", 403},
		{"bob", "create", "pods", "exec", "default", "red-1", "forbidden", 403},
		{"bob", "watch", "configmaps", "", "", "", "client gone", 499},
	} {
		if !slices.Contains(records, want) {
			t.Errorf("no record %+v", want)
		}
	}
	if t.Failed() {
		t.Logf("%+v", records)
	}
}

// testShutdown ends watches, and with them the gateway.
func (c *cluster) testShutdown(t *testing.T) {
	watch, err := c.client(t, "alice-token").CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	if event := <-watch.ResultChan(); event.Object.(*corev1.Pod).Name != "red-1" {
		t.Error(event)
	}
	c.shutdown()
	for range watch.ResultChan() { // until it ends
	}
	if err := <-c.served; err != nil {
		t.Error(err)
	}
}

// TestConfigErrors checks that errors name what is wrong.
func TestConfigErrors(t *testing.T) {
	leaktest.Check(t)
	certFile, keyFile, _ := certificate(t)
	files := map[string]string{"listen": "127.0.0.1:0", "cert": certFile, "key": keyFile, "server": "127.0.0.1:1", "ca": certFile, "token": keyFile}
	for name, test := range map[string]struct {
		field, value string
		users        []User
		want         string
	}{
		"unknown field": {"srver", "a", users, `"srver"`},
		"no users":      {"", "", nil, "users: there are none"},
		"no hash":       {"", "", []User{{Name: "dave", TokenSHA256: "secret"}}, "users: dave: tokenSHA256"},
		"same token":    {"", "", []User{users[0], {Name: "dave", TokenSHA256: users[0].TokenSHA256}}, "users: dave has the token of another user"},
		"system":        {"", "", []User{{Name: "system:admin", TokenSHA256: users[0].TokenSHA256}}, "system:admin"},
		"no name":       {"", "", []User{{}}, "users: number 1"},
		"no token":      {"token", "missing", users, "token: open missing"},
		"no CA":         {"ca", keyFile, users, "has no certificate"},
		"no cert":       {"cert", "missing", users, "cert and key: open missing"},
		"server":        {"server", "https://a", users, "server: "},
		"listen":        {"listen", "127.0.0.1:x", users, "listen: "},
	} {
		content := map[string]any{"users": test.users}
		for field, value := range files {
			content[field] = value
		}
		if test.field != "" {
			content[test.field] = test.value
		}
		text, err := json.Marshal(content)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "config.json")
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := run(t.Context(), file); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %s", name, err, test.want)
		}
	}
}
