package culvert_test

import (
	"context"
	"errors"
	"log"
	"net/http"
	"os/signal"
	"syscall"
	"time"

	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/server"
	"github.com/culvert-go/culvert/upstream"
	"github.com/culvert-go/culvert/wsupgrade"
)

// A gateway that bounds its WebSockets, keeps them alive, and ends each with a Close frame when it
// shuts down.
func Example_webSockets() {
	app, err := upstream.New(upstream.Options{Name: "app"}, upstream.Target{Addr: "127.0.0.1:9001"})
	if err != nil {
		log.Fatal(err)
	}
	tunnels, err := wsupgrade.NewRegistry(wsupgrade.RegistryOptions{Max: 10_000, MaxPerKey: 20})
	if err != nil {
		log.Fatal(err)
	}
	origins, err := wsupgrade.AllowOrigins("https://app.example", "https://*.app.example")
	if err != nil {
		log.Fatal(err)
	}
	upgrades, err := wsupgrade.New(wsupgrade.Options{
		Registry:     tunnels,
		CheckOrigin:  origins,          // nil: only pages of the site itself
		PingInterval: 30 * time.Second, // keeps middleboxes from dropping idle connections
		MaxLifetime:  24 * time.Hour,
	})
	if err != nil {
		log.Fatal(err)
	}
	gateway, err := proxy.New(proxy.Options{Upstream: app, Upgrades: upgrades})
	if err != nil {
		log.Fatal(err)
	}
	s := &server.Server{
		Addr:              "127.0.0.1:8080",
		Handler:           filters.NewChain().Then(gateway),
		ReadHeaderTimeout: 10 * time.Second,
	}

	stop, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	go func() {
		if err := s.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
			log.Fatal(err)
		}
	}()
	<-stop.Done()

	grace, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	tunnels.Drain(grace, wsupgrade.GoingAway) // a Close frame with 1001 to both ends of each tunnel
	s.Shutdown(grace)                         // waits for requests, and knows nothing of tunnels
}
