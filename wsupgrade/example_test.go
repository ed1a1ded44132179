package wsupgrade_test

import (
	"log"
	"net/http"
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
