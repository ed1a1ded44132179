package statuspage_test

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"

	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/statuspage"
	"github.com/culvert-go/culvert/upstream"
	"github.com/culvert-go/culvert/wsupgrade"
)

// A gateway with a page at /status, on which an operator with a password drains targets and closes tunnels.
func ExampleNew() {
	app, err := upstream.New(upstream.Options{Name: "app"}, upstream.Target{Addr: "127.0.0.1:9001"}, upstream.Target{Addr: "127.0.0.1:9002"})
	if err != nil {
		log.Fatal(err)
	}
	defer app.Close()
	tunnels, err := wsupgrade.NewRegistry(wsupgrade.RegistryOptions{})
	if err != nil {
		log.Fatal(err)
	}
	upgrades, err := wsupgrade.New(wsupgrade.Options{Registry: tunnels})
	if err != nil {
		log.Fatal(err)
	}
	gateway, err := proxy.New(proxy.Options{Upstream: app, Upgrades: upgrades})
	if err != nil {
		log.Fatal(err)
	}
	page, err := statuspage.New(statuspage.Options{
		Title:   "gateway",
		Groups:  slices.Values([]statuspage.Upstream{app}),
		Tunnels: tunnels,
		Authorize: func(r *http.Request) bool {
			user, password, _ := r.BasicAuth()
			return user == "operator" && password == "secret" // compare with a hash of it instead
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/", gateway)
	mux.Handle("/status", page)
	handler := filters.NewChain(filters.Observe(page)).Then(mux)
	s := &http.Server{Addr: "127.0.0.1:8080", Handler: handler}
	s.RegisterOnShutdown(page.Close) // else Shutdown waits for open pages

	if err := app.SetDrained("127.0.0.1:9001", true); err != nil {
		log.Fatal(err)
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequest("GET", "/status", nil))
	fmt.Println(w.Code, w.Header().Get("Content-Type"))
	for _, t := range page.Snapshot().Groups[0].Targets {
		fmt.Println(t.Addr, t.State, t.Why)
	}
	// Output:
	// 200 text/html; charset=utf-8
	// 127.0.0.1:9001 drained no further requests; none is in flight
	// 127.0.0.1:9002 up
}
