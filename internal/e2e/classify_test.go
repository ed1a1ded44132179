package e2e

import (
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/culvert-go/culvert/watchcodec"
)

// FuzzClassify holds watchcodec.Classify against the apiserver's own resolver.
func FuzzClassify(f *testing.F) {
	index, err := os.ReadFile("../../watchcodec/testdata/recordings/index.tsv")
	if err != nil {
		f.Fatal(err)
	}
	for line := range strings.Lines(string(index)) {
		f.Add("GET", strings.Split(line, "\t")[1])
	}
	for _, target := range []string{
		"/", "/api", "/api/v1", "/apis/apps", "/apis/apps/v1", "/healthz/a/b", "/api/v1/watch", "/api/v1/watch/pods", "/api/v1/watch/namespaces/x/pods/foo",
		"/api/v1/proxy/nodes/n/a/b", "/api/v1/namespaces", "/api/v1/namespaces/x", "/api/v1/namespaces/x/status", "/api/v1/namespaces/x/finalize", "/api/v1/namespaces/x/pods/p/log",
		"/api/v1/pods?watch", "/api/v1/pods?watch=", "/api/v1/pods?watch=0", "/api/v1/pods?watch=False", "/api/v1/pods?watch=no", "/api/v1/pods/p?watch=1",
		"/api/v1/pods?watch=1&limit=x", "/api/v1/pods?watch=0&limit=x", "/api/v1/pods?fieldSelector=metadata.name%3Da", "/api/v1/pods?fieldSelector=metadata.name%3D..%2Cx%3Dy",
		"/api/v1/pods?fieldSelector=metadata.name%3D%3Da&limit=x", "/api/v1/pods?sendInitialEvents=true&watch=true", "//api/v1//pods", "/apis/g/v/namespaces/n/r/name/sub/more",
	} {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "BREW"} {
			f.Add(method, target)
		}
	}
	resolver := &apirequest.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}
	f.Fuzz(func(t *testing.T, method, target string) {
		u, err := url.ParseRequestURI(target)
		if err != nil {
			return
		}
		r := &http.Request{Method: method, URL: u}
		got, ok := watchcodec.Classify(r)
		want, err := resolver.NewRequestInfo(r)
		if ok != (err == nil && want.IsResourceRequest) {
			t.Fatalf("%s %s: a request for a resource: %v, want %v (%v)", method, target, ok, want.IsResourceRequest, err)
		}
		if !ok {
			return
		}
		if [7]string{got.Verb, got.APIGroup, got.APIVersion, got.Namespace, got.Resource, got.Subresource, got.Name} !=
			[7]string{want.Verb, want.APIGroup, want.APIVersion, want.Namespace, want.Resource, want.Subresource, want.Name} {
			t.Errorf("%s %s: %+v, want %+v", method, target, got, want)
		}
	})
}
