package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/culvert-go/culvert/watchcodec/watchtest"
)

// apiserver has two nodes, a service and its slice, and records the tokens of the requests for
// each path.
type apiserver struct {
	*httptest.Server
	mu     sync.Mutex
	tokens map[string][]string // by path
}

func startAPIServer(t *testing.T) *apiserver {
	t.Helper()
	mux := http.NewServeMux()
	for path, object := range map[string]string{
		"/api/v1/nodes":    `{"kind":"Node","apiVersion":"v1","metadata":{"name":"node0","labels":{"zone1":"a"}}}`,
		"/api/v1/services": `{"kind":"Service","apiVersion":"v1","metadata":{"name":"web","namespace":"shop","annotations":{"topologyKeys":"[\"zone1\"]"}}}`,
		"/apis/discovery.k8s.io/v1/endpointslices": `{"kind":"EndpointSlice","apiVersion":"discovery.k8s.io/v1","metadata":{"name":"web-x","namespace":"shop","labels":{"kubernetes.io/service-name":"web"}},
			"endpoints":[{"addresses":["10.0.0.1"],"nodeName":"node0"},{"addresses":["10.0.0.2"],"nodeName":"node1"}]}`,
	} {
		var o unstructured.Unstructured
		if err := json.Unmarshal([]byte(object), &o.Object); err != nil {
			t.Fatal(err)
		}
		s, err := watchtest.New(watchtest.Options{Resource: path[strings.LastIndex(path, "/")+1:], Kind: o.GetKind(), APIVersion: o.GetAPIVersion(), JSON: unstructured.UnstructuredJSONScheme})
		if err != nil {
			t.Fatal(err)
		}
		s.Set(&o)
		mux.Handle(path, s)
		if path == slicesPath {
			mux.Handle("/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices", s)
		}
	}
	mux.HandleFunc("/api/v1/namespaces/shop/pods/p/log", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "a log") })
	a := &apiserver{tokens: map[string][]string{}}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		a.tokens[r.URL.Path] = append(a.tokens[r.URL.Path], r.Header.Get("Authorization"))
		a.mu.Unlock()
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(a.Close)
	return a
}

func (a *apiserver) tokensFor(path string) []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.tokens[path]
}

// startGateway starts a gateway for node0 with a token of its own.
func startGateway(t *testing.T, a *apiserver, args ...string) *gateway {
	t.Helper()
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("own\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := parse(append([]string{"-server", a.URL, "-node", "node0", "-token-file", token}, args...), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	g, err := newGateway(s, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.close)
	deadline := time.Now().Add(30 * time.Second)
	for get(g.admin(), "/readyz", "").Code != http.StatusOK {
		if time.Now().After(deadline) {
			t.Fatal("not ready")
		}
		time.Sleep(time.Millisecond)
	}
	return g
}

func get(h http.Handler, target, token string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, target, nil)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

const slicesPath = "/apis/discovery.k8s.io/v1/endpointslices"

// TestCallersHaveTheirOwnRights: the gateway's token is used for its own requests, and for
// callers without one if that is switched on.
func TestCallersHaveTheirOwnRights(t *testing.T) {
	for _, share := range []bool{false, true} {
		a := startAPIServer(t)
		var args []string
		if share {
			args = []string{"-share"}
		}
		g := startGateway(t, a, args...)
		for _, token := range []string{"caller", ""} {
			body := get(g.handler, slicesPath, token).Body.String()
			if !strings.Contains(body, "10.0.0.1") || strings.Contains(body, "10.0.0.2") {
				t.Errorf("share %v, token %q: %s", share, token, body)
			}
			if body := get(g.handler, "/api/v1/namespaces/shop/pods/p/log", token).Body.String(); body != "a log" {
				t.Errorf("share %v, token %q: the log is %q", share, token, body)
			}
		}
		withoutToken := map[bool]string{true: "Bearer own", false: ""}[share]
		if got := a.tokensFor("/api/v1/namespaces/shop/pods/p/log"); len(got) != 2 || got[0] != "Bearer caller" || got[1] != withoutToken {
			t.Errorf("share %v: the logs were requested by %q", share, got)
		}
		for _, token := range a.tokensFor("/api/v1/nodes") {
			if token != "Bearer own" {
				t.Errorf("share %v: nodes were requested by %q", share, token)
			}
		}
		seen := map[string]bool{}
		for _, token := range a.tokensFor(slicesPath) {
			seen[token] = true
		}
		if len(seen) != 2 || !seen["Bearer caller"] || !seen[withoutToken] {
			t.Errorf("share %v: slices were requested by %v", share, seen)
		}
	}
}

// TestAdmin: the page explains each endpoint, metrics describe the views.
func TestAdmin(t *testing.T) {
	g := startGateway(t, startAPIServer(t))
	get(g.handler, slicesPath, "caller")
	for target, wants := range map[string][]string{
		"/":                                {`<a href="/debug/topology">`, `<a href="/metrics">`, `<a href="/status">`, `<a href="/readyz">`, `<a href="/healthz">`},
		"/status":                          {"edge on node0", "<h2>own <small>http</small></h2>", "<h2>callers <small>http</small></h2>"},
		"/elsewhere":                       {"404 page not found"},
		"/healthz":                         {"ok"},
		"/metrics":                         {`edge_view_objects{fields="",labels="",path="/apis/discovery.k8s.io/v1/endpointslices"} 1`, `edge_view_synced{fields="",labels="",path="/apis/discovery.k8s.io/v1/endpointslices"} 1`, "edge_view_stale_seconds"},
		"/debug/topology":                  {"What node0 sees", "zone1=a"},
		"/debug/topology?service=shop/web": {"1 of 2 endpoints are kept", "zone1=a here and on node0", "its node, node1, is unknown"},
		"/debug/topology?service=web":      {"want namespace/name"},
		"/debug/topology?service=<script>": {"&lt;script&gt;"},
	} {
		body := get(g.admin(), target, "").Body.String()
		for _, want := range wants {
			if !strings.Contains(body, want) {
				t.Errorf("%s does not have %q:\n%s", target, want, body)
			}
		}
	}
}

// TestNotReady: without the API server nothing is known, and the gateway says so.
func TestNotReady(t *testing.T) {
	s, err := parse([]string{"-server", "http://127.0.0.1:1", "-node", "n"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	g, err := newGateway(s, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer g.close()
	if got := get(g.admin(), "/readyz", ""); got.Code != http.StatusServiceUnavailable || !strings.Contains(got.Body.String(), "not known yet") {
		t.Errorf("%d %s", got.Code, got.Body)
	}
}

// TestRun serves until its context ends.
func TestRun(t *testing.T) {
	a := startAPIServer(t)
	ctx, cancel := context.WithCancel(t.Context())
	out, print := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, []string{"-server", a.URL, "-node", "node0", "-listen", "127.0.0.1:0", "-admin", "127.0.0.1:0"}, print, io.Discard)
	}()
	line := make([]byte, 200)
	n, err := out.Read(line)
	if err != nil || !strings.HasPrefix(string(line[:n]), "node node0, policy superedge: http://127.0.0.1:") {
		t.Errorf("%q %v", line[:n], err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestWrongFlags: errors name the flag.
func TestWrongFlags(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	config := func(user string) string {
		return file(fmt.Sprintf("config%d", len(user)), "current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\nclusters: [{name: k, cluster: {server: 'https://127.0.0.1:1'}}]\nusers: [{name: u, user: "+user+"}]\n")
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{}, "one of -kubeconfig and -server"},
		{[]string{"-server", "http://a", "-kubeconfig", "b"}, "one of -kubeconfig and -server"},
		{[]string{"-server", "ftp://a"}, `the server "ftp://a"`},
		{[]string{"-server", "http://a", "-policy", "x"}, "superedge, ordered, openyurt, trafficdistribution"},
		{[]string{"-server", "http://a", "more"}, `unknown argument "more"`},
		{[]string{"-server", "http://a", "-tls-cert", "x"}, "go together"},
		{[]string{"-server", "http://a", "-listen", "0.0.0.0:0"}, "in the clear"},
		{[]string{"-server", "http://a", "-listen", "0.0.0.0:0", "-tls-cert", "/no", "-tls-key", "/no"}, "-tls-cert /no"},
		{[]string{"-server", "https://a", "-ca", "/no"}, "/no"},
		{[]string{"-server", "https://a", "-ca", file("ca", "nothing")}, "none in"},
		{[]string{"-server", "https://a", "-cert", "/no", "-key", "/no"}, "the gateway's certificate"},
		{[]string{"-kubeconfig", "/no"}, "/no"},
		{[]string{"-kubeconfig", file("broken", "a: [")}, "broken"},
		{[]string{"-kubeconfig", config("{token: t}"), "-context", "other"}, `no context "other"`},
		{[]string{"-kubeconfig", config("{exec: {command: x}}")}, "a command"},
		{[]string{"-kubeconfig", config("{client-certificate-data: '%'}")}, "client-certificate-data"},
	} {
		if err := run(t.Context(), append([]string{"-node", "n", "-admin", "127.0.0.1:0"}, c.args...), io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.args, err, c.want)
		}
	}
}

// TestKubeconfig: a kubeconfig with data in it, and one with files beside it.
func TestKubeconfig(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "config")
	data := base64.StdEncoding.EncodeToString([]byte("data"))
	content := `{"current-context": "b", "contexts": [{"name": "a", "context": {"cluster": "k", "user": "u"}}, {"name": "b", "context": {"cluster": "k", "user": "v"}}],
		"clusters": [{"name": "k", "cluster": {"server": "https://10.0.0.1:6443", "certificate-authority": "ca.crt", "tls-server-name": "s"}}],
		"users": [{"name": "u", "user": {"client-certificate-data": "` + data + `", "client-key-data": "` + data + `"}}, {"name": "v", "user": {"tokenFile": "/var/token"}}]}`
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	a, errA := readKubeconfig(name, "a")
	b, errB := readKubeconfig(name, "")
	if errA != nil || errB != nil || a.server != "https://10.0.0.1:6443" || a.caFile != filepath.Join(dir, "ca.crt") || a.serverName != "s" || !bytes.Equal(a.cert, []byte("data")) || a.tokenFile != "" {
		t.Errorf("%+v %v %v", a, errA, errB)
	}
	if b.tokenFile != "/var/token" || len(b.cert) > 0 {
		t.Errorf("%+v", b)
	}
}
