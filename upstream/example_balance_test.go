package upstream_test

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// selects prints the targets of some requests, each of which has ended before the next.
func selects(balance upstream.Balance, requests ...*http.Request) {
	group, err := upstream.New(upstream.Options{Balance: balance},
		upstream.Target{Addr: "192.0.2.1:80"}, upstream.Target{Addr: "192.0.2.2:80", Weight: 2},
		upstream.Target{Addr: "192.0.2.3:80"})
	if err != nil {
		log.Fatal(err)
	}
	defer group.Close()
	for _, r := range requests {
		lease, err := group.Pick(r.Context(), r)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Print(lease.Addr(), " ")
		lease.Done(upstream.Outcome{Status: 200})
	}
	fmt.Println()
}

// In turn, by weight.
func ExampleRoundRobin() {
	r := httptest.NewRequest("GET", "/", nil)
	selects(upstream.RoundRobin(), r, r, r, r)
	// Output: 192.0.2.2:80 192.0.2.1:80 192.0.2.3:80 192.0.2.2:80
}

// The target with the fewest requests in flight, for requests that differ much in what they take.
func ExampleLeastConn() {
	group, err := upstream.New(upstream.Options{Balance: upstream.LeastConn()},
		upstream.Target{Addr: "192.0.2.1:80"}, upstream.Target{Addr: "192.0.2.2:80"})
	if err != nil {
		log.Fatal(err)
	}
	defer group.Close()
	r := httptest.NewRequest("GET", "/", nil)
	for i := range 4 {
		lease, err := group.Pick(r.Context(), r)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Print(lease.Addr(), " ")
		if i > 0 { // the first one takes long
			lease.Done(upstream.Outcome{Status: 200})
		}
	}
	// Output: 192.0.2.1:80 192.0.2.2:80 192.0.2.2:80 192.0.2.2:80
}

// The better one of two random targets, for many gateways in front of the same targets.
func ExampleRandomTwo() {
	group, err := upstream.New(upstream.Options{Balance: upstream.RandomTwo()},
		upstream.Target{Addr: "192.0.2.1:80"}, upstream.Target{Addr: "192.0.2.2:80"})
	if err != nil {
		log.Fatal(err)
	}
	defer group.Close()
}

// One target serves, the others stand by.
func ExampleFirst() {
	r := httptest.NewRequest("GET", "/", nil)
	selects(upstream.First(), r, r, r)
	// Output: 192.0.2.1:80 192.0.2.1:80 192.0.2.1:80
}

// A client keeps its target by its address, on the same target as behind nginx's ip_hash.
func ExampleIPHash() {
	a, b := httptest.NewRequest("GET", "/", nil), httptest.NewRequest("GET", "/", nil)
	a.RemoteAddr, b.RemoteAddr = "198.51.100.1:1000", "172.16.9.1:1000"
	selects(upstream.IPHash(), a, a, b, b)
	// Output: 192.0.2.1:80 192.0.2.1:80 192.0.2.2:80 192.0.2.2:80
}

// A tenant's requests share the cache of one target. Another target takes a share of the tenants only.
func ExampleHash() {
	tenant := func(r *http.Request) string { return r.Header.Get("X-Tenant") }
	blue, red := httptest.NewRequest("GET", "/a", nil), httptest.NewRequest("GET", "/b", nil)
	blue.Header.Set("X-Tenant", "blue")
	red.Header.Set("X-Tenant", "red")
	selects(upstream.Hash(tenant), blue, blue, red, red)
	// Output: 192.0.2.2:80 192.0.2.2:80 192.0.2.3:80 192.0.2.3:80
}

// nginx's "hash $request_uri": for a gateway that takes over from nginx, with the caches of the targets filled.
func ExampleHashModulo() {
	uri := func(r *http.Request) string { return r.RequestURI }
	selects(upstream.HashModulo(uri), httptest.NewRequest("GET", "/a", nil), httptest.NewRequest("GET", "/a", nil))
	// Output: 192.0.2.1:80 192.0.2.1:80
}

// A session keeps its target by a cookie, from which a client can't learn addresses.
func ExampleSticky() {
	group, err := upstream.New(upstream.Options{
		Balance: upstream.Sticky(upstream.StickyOptions{
			Secret: []byte("32 random bytes, shared by gateways"), Otherwise: upstream.LeastConn(),
		}),
	}, upstream.Target{Addr: "192.0.2.1:80"}, upstream.Target{Addr: "192.0.2.2:80"})
	if err != nil {
		log.Fatal(err)
	}
	defer group.Close()
	r := httptest.NewRequest("GET", "/", nil)
	first, err := group.Pick(r.Context(), r)
	if err != nil {
		log.Fatal(err)
	}
	r.AddCookie(first.Cookie(r)) // the browser sends it back: package proxy has added it to the response
	second, err := group.Pick(r.Context(), r)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(first.Addr() == second.Addr())
	// Output: true
}

// The targets, their weights and backups are SRV records of the DNS.
func ExampleSRV() {
	source, err := upstream.SRV("_http._tcp.app.example.com", upstream.DNSOptions{MaxInterval: time.Minute})
	if err != nil {
		log.Fatal(err)
	}
	group, err := upstream.New(upstream.Options{Name: "app", Source: source})
	if err != nil {
		log.Fatal(err)
	}
	defer group.Close()
}

// Two routes share targets, their health and their load. Reports may take longer.
func ExampleTransport() {
	group, err := upstream.New(upstream.Options{Name: "app"},
		upstream.Target{Addr: "192.0.2.1:80"}, upstream.Target{Addr: "192.0.2.2:80"})
	if err != nil {
		log.Fatal(err)
	}
	defer group.Close()
	patient, err := upstream.NewTransport(upstream.Options{HeaderTimeout: 10 * time.Minute})
	if err != nil {
		log.Fatal(err)
	}
	pages, err := proxy.New(proxy.Options{Upstream: group})
	if err != nil {
		log.Fatal(err)
	}
	reports, err := proxy.New(proxy.Options{Upstream: group, Transport: patient})
	if err != nil {
		log.Fatal(err)
	}
	http.Handle("/", pages)
	http.Handle("/reports/", reports)
}
