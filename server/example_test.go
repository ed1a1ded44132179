package server_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/culvert-go/culvert/server"
)

// A Server is used as an http.Server is.
func Example() {
	s := &server.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintln(w, "hello from", r.URL.Path)
		}),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       time.Minute,
		OnRefused: func(_ http.ResponseWriter, r *server.Refusal) {
			log.Printf("%s: %q was refused with %d: %v", r.Request.RemoteAddr, r.Line, r.Status, r.Err)
		},
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()

	resp, err := http.Get("http://" + l.Addr().String() + "/there")
	if err != nil {
		log.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	fmt.Print(string(body))

	if err := s.Shutdown(context.Background()); err != nil {
		log.Fatal(err)
	}
	fmt.Println(<-ended)
	// Output:
	// hello from /there
	// http: Server closed
}
