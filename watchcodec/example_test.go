package watchcodec_test

import (
	"log"
	"net/http"

	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/proxy"
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
	server := &http.Server{Addr: "127.0.0.1:8443", Handler: filters.NewChain(slim).Then(gateway)}
	_ = server // log.Fatal(server.ListenAndServeTLS("cert.pem", "key.pem"))
}
