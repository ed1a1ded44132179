package culvert_test

import (
	"crypto/tls"
	"log"
	"time"

	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/server"
	"github.com/culvert-go/culvert/upstream"
	"github.com/culvert-go/culvert/wsupgrade"
)

// A gateway in front of a Kubernetes API server. Lists, watches, logs, exec and port-forward pass.
func Example_kubernetes() {
	clientTLS := &tls.Config{} // the CA of the cluster, and a client certificate

	apiserver, err := upstream.New(
		upstream.Options{Name: "apiserver", Scheme: "https", TLSConfig: clientTLS,
			Check: &upstream.Check{Path: "/readyz"}},
		upstream.Target{Addr: "10.0.0.1:6443"},
		upstream.Target{Addr: "10.0.0.2:6443"},
	)
	if err != nil {
		log.Fatal(err)
	}
	upgrades, err := wsupgrade.New(wsupgrade.Options{
		Protocols: []string{"websocket", "SPDY/3.1"}, // exec, attach and port-forward of all clients
		TLSConfig: clientTLS,
	})
	if err != nil {
		log.Fatal(err)
	}
	gateway, err := proxy.New(proxy.Options{
		Upstream: apiserver,
		Upgrades: upgrades,
		Rewrite:  func(o *proxy.Outbound) { o.Out.Host = "" }, // the target's address
		// BodyTimeout is 0: a watch may be silent for hours.
	})
	if err != nil {
		log.Fatal(err)
	}
	s := &server.Server{
		Addr:              "127.0.0.1:8443",
		Handler:           filters.NewChain().Then(gateway),
		ReadHeaderTimeout: 10 * time.Second,
	}
	log.Fatal(s.ListenAndServeTLS("cert.pem", "key.pem"))
}
