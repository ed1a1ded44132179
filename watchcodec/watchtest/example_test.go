package watchtest_test

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/culvert-go/culvert/watchcodec/watchtest"
)

// A test of a program that watches runs it against a server, whose objects it changes.
func Example() {
	things, err := watchtest.New(watchtest.Options{
		Resource: "things", Kind: "Thing", APIVersion: "example.org/v1",
		JSON: unstructured.UnstructuredJSONScheme,
	})
	if err != nil {
		log.Fatal(err)
	}
	server := httptest.NewServer(things)
	defer server.Close()

	thing := &unstructured.Unstructured{}
	thing.SetNamespace("default")
	thing.SetName("a")
	version := things.Set(thing)
	things.Delete("default", "a")

	resp, err := http.Get(server.URL + "/apis/example.org/v1/things?watch=1&timeoutSeconds=0&resourceVersion=" + version)
	if err != nil {
		log.Fatal(err)
	}
	defer resp.Body.Close()
	events, err := io.ReadAll(resp.Body)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s", events)
	// Output:
	// {"type":"DELETED","object":{"apiVersion":"example.org/v1","kind":"Thing","metadata":{"name":"a","namespace":"default","resourceVersion":"3"}}}
}
