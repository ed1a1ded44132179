package upstream_test

import (
	"crypto/tls"
	"fmt"
	"log"

	"github.com/culvert-go/culvert/upstream"
)

// Targets may be URLs, of which each has its scheme, certificate and base path.
func ExampleParseTarget() {
	var targets []upstream.Target
	for _, url := range []string{"https://api.example.net/v2", "http://192.0.2.1:8080"} {
		target, err := upstream.ParseTarget(url)
		if err != nil {
			log.Fatal(err)
		}
		target.Labels = map[string]string{"version": "2"}
		targets = append(targets, target)
	}
	group, err := upstream.New(upstream.Options{Name: "api"}, targets...)
	if err != nil {
		log.Fatal(err)
	}
	defer group.Close()
	for s := range group.Targets() {
		fmt.Println(s.Target.Scheme, s.Target.Addr, s.Target.Path)
	}
	// Output:
	// https api.example.net:443 /v2
	// http 192.0.2.1:8080
}

// Each target of a group may have a certificate and a client certificate of its own.
func ExampleTarget() {
	var config *tls.Config // with the client certificate for the first target
	group, err := upstream.New(upstream.Options{Name: "partners", Scheme: "https"},
		upstream.Target{Addr: "192.0.2.1:443", ServerName: "one.example.net", TLSConfig: config, Zone: "eu-1"},
		upstream.Target{Addr: "192.0.2.2:8443", ServerName: "two.example.net", Path: "/v2", Zone: "eu-2"},
	)
	if err != nil {
		log.Fatal(err)
	}
	defer group.Close()
}

// Targets that expect a header of the PROXY protocol learn the client's address without a field that clients could forge.
func ExampleProxyProtocol() {
	group, err := upstream.New(upstream.Options{
		Name:          "shop",
		ProxyProtocol: upstream.ProxyProtocolV2,
	}, upstream.Target{Addr: "192.0.2.1:8080"})
	if err != nil {
		log.Fatal(err)
	}
	defer group.Close()
}

// Targets are reached through a company's proxy, and the connections to them are kept as without it.
func ExampleDialThrough() {
	dial, err := upstream.DialThrough("https://gateway:secret@proxy.example.com:3129", upstream.EgressOptions{})
	if err != nil {
		log.Fatal(err)
	}
	group, err := upstream.New(upstream.Options{
		Name:        "partners",
		Scheme:      "https",
		DialContext: dial,
	}, upstream.Target{Addr: "api.example.net:443"})
	if err != nil {
		log.Fatal(err)
	}
	defer group.Close()
}
