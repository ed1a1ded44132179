package wsupgrade_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/server"
	"github.com/culvert-go/culvert/wsupgrade"
)

// A web terminal's WebSockets are forwarded to another server; all other requests are served here.
func Example() {
	upgrades, err := wsupgrade.New(wsupgrade.Options{HandshakeTimeout: 5 * time.Second})
	if err != nil {
		log.Fatal(err)
	}
	target, err := url.Parse("wss://terminal.internal:8443")
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /exec/", upgrades.Handler(target))
	mux.Handle("/", http.FileServer(http.Dir("assets")))
	s := &server.Server{
		Addr:              "127.0.0.1:8080",
		Handler:           mux,
		ReadHeaderTimeout: 10 * time.Second,
	}
	log.Fatal(s.ListenAndServe())
}

// A handler that chooses the target itself, and logs failures.
func ExampleForwarder_Forward() {
	upgrades, err := wsupgrade.New(wsupgrade.Options{Protocols: []string{"websocket", "SPDY/3.1"}})
	if err != nil {
		log.Fatal(err)
	}
	forward := func(w http.ResponseWriter, r *http.Request) {
		if upgrades.Protocol(r) == "" {
			http.NotFound(w, r)
			return
		}
		out := r.Clone(r.Context())
		out.URL.Scheme, out.URL.Host = "http", "127.0.0.1:9000"
		if _, err := upgrades.Forward(w, r, out); err != nil {
			e := err.(*culvert.Error) // it is always this type
			log.Print(e)
			if e.HeaderSent {
				panic(http.ErrAbortHandler)
			}
			wsupgrade.Refuse(w, e)
		}
	}
	// The chain cleans the request's header before any handler reads it.
	http.Handle("/", filters.NewChain().ThenFunc(forward))
}

// The pages of two sites may open WebSockets here, besides the pages of this one.
func ExampleAllowOrigins() {
	check, err := wsupgrade.AllowOrigins("https://app.example", "https://*.partner.example")
	if err != nil {
		log.Fatal(err)
	}
	upgrades, err := wsupgrade.New(wsupgrade.Options{CheckOrigin: check})
	if err != nil {
		log.Fatal(err)
	}
	_ = upgrades // proxy.Options.Upgrades
	for _, origin := range []string{"https://app.example", "https://a.partner.example", "https://evil.example"} {
		r := httptest.NewRequest("GET", "/chat", nil)
		r.Header.Set("Origin", origin)
		fmt.Println(origin, check(r))
	}
	// Output:
	// https://app.example true
	// https://a.partner.example true
	// https://evil.example false
}

// At a deploy all WebSockets are sent a Close frame with 1001, and have ten seconds.
func ExampleRegistry() {
	registry, err := wsupgrade.NewRegistry(wsupgrade.RegistryOptions{Max: 10_000, MaxPerKey: 20})
	if err != nil {
		log.Fatal(err)
	}
	upgrades, err := wsupgrade.New(wsupgrade.Options{Registry: registry, IdleTimeout: time.Hour})
	if err != nil {
		log.Fatal(err)
	}
	_ = upgrades // proxy.Options.Upgrades

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	fmt.Println(registry.Drain(ctx, wsupgrade.GoingAway), registry.Len())
	// Output: <nil> 0
}

// Behind an nginx that has not been configured for WebSockets yet, those of one path work all the same.
func ExampleRestore() {
	restore, err := wsupgrade.Restore(func(r *http.Request) bool { return r.URL.Path == "/chat" })
	if err != nil {
		log.Fatal(err)
	}
	h := filters.NewChain(restore).ThenFunc(func(_ http.ResponseWriter, r *http.Request) {
		fmt.Printf("%s %q\n", r.URL.Path, r.Header.Get("Upgrade"))
	})
	for _, path := range []string{"/chat", "/"} {
		r := httptest.NewRequest("GET", path, nil)
		r.Header.Set("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")
		r.Header.Set("Sec-WebSocket-Version", "13")
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
	// Output:
	// /chat "websocket"
	// / ""
}
