package watchcodec_test

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strings"

	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/server"
	"github.com/culvert-go/culvert/upstream"
	"github.com/culvert-go/culvert/watchcodec"
)

// A gateway in front of an API server removes managedFields from every object that clients read:
// often half of the bytes, of which few clients make use.
func Example() {
	apiserver, err := upstream.New(upstream.Options{Scheme: "https"}, upstream.Target{Addr: "10.0.0.1:6443"})
	if err != nil {
		log.Fatal(err)
	}
	gateway, err := proxy.New(proxy.Options{Upstream: apiserver})
	if err != nil {
		log.Fatal(err)
	}
	strip := watchcodec.Delete(watchcodec.ManagedFields()...)
	slim, err := watchcodec.NewFilter(watchcodec.FilterOptions{
		AllowWrites: true, // servers keep the managedFields of a client that sends none
		Rewriter: func(*http.Request, watchcodec.Request) watchcodec.Rewriter {
			return func(o *watchcodec.Object) (bool, error) { return true, o.Edit(strip) }
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	s := &server.Server{Addr: "127.0.0.1:8443", Handler: filters.NewChain(slim).Then(gateway)}
	_ = s // log.Fatal(s.ListenAndServeTLS("cert.pem", "key.pem"))
}

// A program that follows a watch reads its events, here from a recording. It decodes no more of an
// object than it asks for.
func ExampleEventReader() {
	recording := strings.NewReader(`{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"7"},"status":{"phase":"Running"}}}
{"type":"DELETED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"8"}}}
`)
	phase := []watchcodec.Field{{Name: "status", Number: 3}, {Name: "phase", Number: 1}}
	events := watchcodec.NewEventReader(recording, watchcodec.JSON, 0)
	for {
		event, err := events.Next()
		if err == io.EOF { // the server has ended the watch
			return
		}
		if err != nil {
			log.Fatal(err)
		}
		value, _ := event.Object.Value().Get(phase...)
		text, _ := value.Text()
		fmt.Printf("%s %s %s\n", event.Type, event.Object.Name(), text)
	}
	// Output:
	// ADDED a Running
	// DELETED a
}

// A gateway that receives a list piece by piece, as the response of a handler is written, passes the
// pieces to a ListParser.
func ExampleListParser() {
	list := watchcodec.NewListParser(watchcodec.JSON, 0, func(o *watchcodec.Object) error {
		fmt.Printf("%s %s\n", o.Kind(), o.Name())
		return nil
	})
	for _, piece := range []string{`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"ite`, `ms":[{"metadata":{"name":"a"}},{"metadata":`, `{"name":"b"}}]}`} {
		if _, err := io.WriteString(list, piece); err != nil {
			log.Fatal(err)
		}
	}
	if err := list.Close(); err != nil { // the list is incomplete
		log.Fatal(err)
	}
	fmt.Println("all at resourceVersion", list.ResourceVersion())
	// Output:
	// Pod a
	// Pod b
	// all at resourceVersion 7
}

// Every client that watches receives each event, and none waits for another.
func ExampleFanout() {
	fanout, err := watchcodec.NewFanout(watchcodec.FanoutOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer fanout.Close()
	http.Handle("/apis/example.org/v1/things", fanout) // serves a watch of what is sent from now on

	var o watchcodec.Object
	if err := o.Parse(watchcodec.JSON, "example.org/v1", "Thing", []byte(`{"metadata":{"name":"a"}}`)); err != nil {
		log.Fatal(err)
	}
	event, err := watchcodec.AppendEvent(nil, watchcodec.Added, &o)
	if err != nil {
		log.Fatal(err)
	}
	fanout.Send(event)
	_, _ = os.Stdout.Write(event)
	// Output:
	// {"type":"ADDED","object":{"kind":"Thing","apiVersion":"example.org/v1","metadata":{"name":"a"}}}
}
