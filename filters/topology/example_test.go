package topology_test

import (
	"log"
	"net/http"

	"github.com/culvert-go/culvert/filters/topology"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/server"
	"github.com/culvert-go/culvert/upstream"
)

// A gateway on the node edge-1, between its kube-proxy and the API server, shows the endpoints that
// SuperEdge's annotations choose for that node, and all of them where none is left.
func Example() {
	apiserver, err := upstream.New(upstream.Options{Scheme: "https"}, upstream.Target{Addr: "10.0.0.1:6443"})
	if err != nil {
		log.Fatal(err)
	}
	gateway, err := proxy.New(proxy.Options{Upstream: apiserver})
	if err != nil {
		log.Fatal(err)
	}
	policy := topology.WithFallback(topology.SuperEdge())
	watch, err := topology.NewWatch(topology.WatchOptions{
		Handler: gateway,
		Header:  http.Header{"Authorization": {"Bearer ..."}}, // may list and watch nodes and services
		Policy:  policy,
	})
	if err != nil {
		log.Fatal(err)
	}
	defer watch.Close()
	filter, err := topology.New(topology.Options{Node: "edge-1", Inputs: watch, Policy: policy})
	if err != nil {
		log.Fatal(err)
	}
	defer filter.Close()
	s := &server.Server{Addr: "127.0.0.1:6443", Handler: filter.Filter(gateway)}
	_ = s // log.Fatal(s.ListenAndServeTLS("cert.pem", "key.pem"))
}
