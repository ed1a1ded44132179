package source_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/culvert-go/culvert/watchcodec"
	"github.com/culvert-go/culvert/watchcodec/source"
	"github.com/culvert-go/culvert/watchcodec/watchtest"
)

// names is a Sink that prints what happens. Its methods are called one at a time.
type names struct{ synced func() }

func (n names) Replacing()                        { fmt.Println("all objects follow") }
func (n names) Set(o *watchcodec.Object) error    { fmt.Printf("set %s\n", o.Name()); return nil }
func (n names) Delete(o *watchcodec.Object) error { fmt.Printf("delete %s\n", o.Name()); return nil }
func (n names) Replaced(c source.Collection)      { fmt.Println("that is every", c.Kind); n.synced() }
func (n names) Lost(err error)                    { log.Println("the server is out of reach:", err) }
func (n names) Found()                            {}

// A Source keeps a program in step with a resource. Handler is an API server here; in a gateway it is
// the proxy to one.
func Example() {
	server, err := watchtest.New(watchtest.Options{Resource: "things", Kind: "Thing", APIVersion: "example.org/v1", JSON: unstructured.UnstructuredJSONScheme})
	if err != nil {
		log.Fatal(err)
	}
	for _, name := range []string{"a", "b"} {
		thing := &unstructured.Unstructured{}
		thing.SetName(name)
		server.Set(thing)
	}
	r, err := http.NewRequest(http.MethodGet, "/apis/example.org/v1/things", nil)
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	things, err := source.New(source.Options{Handler: server, Request: r, Sink: names{synced: cancel}})
	if err != nil {
		log.Fatal(err)
	}
	if err := things.Run(ctx); !errors.Is(err, context.Canceled) {
		log.Fatal(err)
	}
	// Output:
	// all objects follow
	// set a
	// set b
	// that is every Thing
}
