package upstream_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/culvert-go/culvert/upstream"
)

// Each tenant has a target of its own, and others share the rest.
func ExampleAffinity() {
	group, err := upstream.New(upstream.Options{Balance: upstream.Affinity(upstream.AffinityOptions{
		Want: func(r *http.Request) string { return r.Header.Get("X-Tenant") },
		Key:  func(t upstream.Target) string { return t.Name },
	})}, upstream.Target{Addr: "10.0.0.1:80", Name: "blue"}, upstream.Target{Addr: "10.0.0.2:80", Name: "green"})
	if err != nil {
		panic(err)
	}
	defer group.Close()
	r := httptest.NewRequest("GET", "/", nil)
	r.Header.Set("X-Tenant", "green")
	lease, err := group.Pick(r.Context(), r)
	if err != nil {
		panic(err)
	}
	defer lease.Done(upstream.Outcome{Status: 200})
	fmt.Println(lease.Addr())
	// Output: 10.0.0.2:80
}
