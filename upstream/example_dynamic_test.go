package upstream_test

import (
	"context"
	"fmt"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// Each tenant has a target of its own, which is in a table. It can't be one of the gateway's own network.
func ExampleNewDynamic() {
	tenants := map[string]string{"blue.example.com": "blue.tenants.example.net:8080"}
	byTenant, err := upstream.NewDynamic(upstream.DynamicOptions{
		Choose: func(r *http.Request) (upstream.Target, error) {
			addr, ok := tenants[r.Host]
			if !ok {
				return upstream.Target{}, &culvert.Error{Kind: culvert.NoTarget, Target: r.Host}
			}
			return upstream.Target{Addr: addr, MaxConns: 100}, nil
		},
		Group: upstream.Options{Name: "tenants", AllowAddr: upstream.PublicAddr},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer byTenant.Close()
	handler, err := proxy.New(proxy.Options{Upstream: byTenant})
	if err != nil {
		log.Fatal(err)
	}

	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequest("GET", "http://green.example.com/", nil))
	fmt.Println(w.Code)
	// Output: 503
}

// canary sends a part of the requests, and all of those that request it, to the group of the next version.
type canary struct {
	stable, next *upstream.Group
	share        float64
}

func (c canary) Pick(ctx context.Context, r *http.Request, tried ...upstream.Lease) (upstream.Lease, error) {
	if len(tried) == 0 && (r.Header.Get("X-Canary") != "" || rand.Float64() < c.share) {
		if lease, err := c.next.Pick(ctx, r); err == nil {
			return lease, nil
		}
	}
	return c.stable.Pick(ctx, r, tried...)
}

// A Picker chooses among groups. Requests that the next version's targets can't be sent are sent to the stable ones.
func ExamplePicker() {
	stable, err := upstream.New(upstream.Options{Name: "stable"}, upstream.Target{Addr: "192.0.2.1:8080"})
	if err != nil {
		log.Fatal(err)
	}
	defer stable.Close()
	next, err := upstream.New(upstream.Options{Name: "next"}, upstream.Target{Addr: "192.0.2.2:8080"})
	if err != nil {
		log.Fatal(err)
	}
	defer next.Close()

	picker := canary{stable, next, 0}
	if _, err := proxy.New(proxy.Options{Upstream: picker}); err != nil {
		log.Fatal(err)
	}
	r := httptest.NewRequest("GET", "/", nil)
	r.Header.Set("X-Canary", "1")
	lease, err := picker.Pick(r.Context(), r)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(lease.Group().Name(), lease.Addr())
	lease.Done(upstream.Outcome{Status: 200})
	// Output: next 192.0.2.2:8080
}
