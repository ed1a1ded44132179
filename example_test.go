package culvert_test

import (
	"log"
	"log/slog"
	"time"

	"github.com/culvert-go/culvert/cachectl"
	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/server"
	"github.com/culvert-go/culvert/upstream"
)

// A gateway in front of two consoles. It forwards WebSockets, sends each client to the
// same console, logs each request, and keeps browsers from caching error pages.
func Example() {
	console, err := upstream.New(
		upstream.Options{Name: "console", Balance: upstream.IPHash()},
		upstream.Target{Addr: "127.0.0.1:9001"},
		upstream.Target{Addr: "127.0.0.1:9002", MaxFails: 3, FailTimeout: 30 * time.Second},
	)
	if err != nil {
		log.Fatal(err)
	}
	gateway, err := proxy.New(proxy.Options{Upstream: console})
	if err != nil {
		log.Fatal(err)
	}
	unsticky, err := cachectl.New(cachectl.ErrorPages())
	if err != nil {
		log.Fatal(err)
	}
	chain := filters.NewChain(filters.AccessLog(slog.Default()), unsticky)
	s := &server.Server{
		Addr:              "127.0.0.1:8080",
		Handler:           chain.Then(gateway),
		ReadHeaderTimeout: 10 * time.Second,
	}
	log.Fatal(s.ListenAndServe())
}
