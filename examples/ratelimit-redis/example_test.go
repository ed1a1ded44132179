package ratelimitredis_test

import (
	"log"
	"net/http"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/culvert-go/culvert/examples/ratelimit-redis"
	"github.com/culvert-go/culvert/filters"
)

// All gateways of a fleet together serve 100 requests of a client in a minute. If the server is out of reach, they serve
// all requests, and log it.
func Example() {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379", ContextTimeoutEnabled: true})
	defer client.Close()
	store, err := ratelimitredis.New(client, "gateway:")
	if err != nil {
		log.Fatal(err)
	}
	limit, err := filters.RateLimit(filters.RateLimitOptions{
		Requests:     100,
		Per:          time.Minute,
		Store:        store,
		StoreTimeout: 200 * time.Millisecond,
		FailOpen:     true,
	})
	if err != nil {
		log.Fatal(err)
	}
	http.Handle("/", filters.NewChain(limit).Then(http.NotFoundHandler()))
}
