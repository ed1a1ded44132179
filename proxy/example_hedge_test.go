package proxy_test

import (
	"log"
	"net/http"
	"time"

	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// The slowest GETs are sent to a second target after 200 ms, one in ten requests at most.
func ExampleRetry_hedge() {
	group, err := upstream.New(upstream.Options{Name: "search"}, upstream.Target{Addr: "192.0.2.1:8080"}, upstream.Target{Addr: "192.0.2.2:8080"})
	if err != nil {
		log.Fatal(err)
	}
	defer group.Close()
	budget, err := proxy.NewRetryBudget(0.1, 1)
	if err != nil {
		log.Fatal(err)
	}
	handler, err := proxy.New(proxy.Options{Upstream: group, Retry: proxy.Retry{Hedge: 200 * time.Millisecond, Budget: budget}})
	if err != nil {
		log.Fatal(err)
	}
	http.Handle("/", handler)
}
