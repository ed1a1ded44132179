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
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379"})
	defer client.Close()
	limit, err := filters.RateLimit(filters.RateLimitOptions{
		Requests:     100,
		Per:          time.Minute,
		Store:        ratelimitredis.New(client, "gateway:"),
		StoreTimeout: 200 * time.Millisecond,
		FailOpen:     true,
	})
	if err != nil {
		log.Fatal(err)
	}
	http.Handle("/", filters.NewChain(limit).Then(http.NotFoundHandler()))
}
