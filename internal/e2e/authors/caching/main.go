// Command caching is a gateway between a shared cache and an application. It decides what caches may keep: assets for a year,
// pages never without a validation, error pages not at all. A second address shows operators what caches do with a page, and why:
//
//	curl '127.0.0.1:8081/cache?path=/assets/app.3f9a2c1b.js'
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/culvert-go/culvert/server"
	"github.com/culvert-go/culvert/upstream"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout, func(public, operators net.Addr) {
		log.Println("listening on", public, "and for operators on", operators)
	})
	if err != nil {
		log.Fatal(err)
	}
}

// config is what the gateway needs to know.
type config struct {
	app    upstream.Target
	caches []netip.Prefix // which are in front
	log    *slog.Logger
}

func run(ctx context.Context, args []string, logs io.Writer, ready func(public, operators net.Addr)) error {
	c := config{log: slog.New(slog.NewJSONHandler(logs, nil))}
	flags := flag.NewFlagSet("caching", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the error says it
	listen := flags.String("listen", "127.0.0.1:8080", "`address` to listen on")
	operators := flags.String("operators", "127.0.0.1:8081", "`address` for operators")
	app := flags.String("app", "", "`URL` of the application")
	caches := flags.String("caches", "127.0.0.0/8", "`network` of the caches in front")
	if err := flags.Parse(args); err != nil {
		return err
	}
	network, err := netip.ParsePrefix(*caches)
	if err != nil {
		return fmt.Errorf("-caches: %w", err)
	}
	c.caches = []netip.Prefix{network}
	if c.app, err = upstream.ParseTarget(*app); err != nil {
		return fmt.Errorf("-app: %w", err)
	}
	g, err := newGateway(c)
	if err != nil {
		return err
	}
	defer g.close()
	public, err := net.Listen("tcp", *listen)
	if err != nil {
		return fmt.Errorf("-listen: %w", err)
	}
	private, err := net.Listen("tcp", *operators)
	if err != nil {
		public.Close()
		return fmt.Errorf("-operators: %w", err)
	}
	errorLog := slog.NewLogLogger(c.log.Handler(), slog.LevelWarn)
	servers := map[net.Listener]*server.Server{
		public:  {Handler: g.public, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, ErrorLog: errorLog},
		private: {Handler: g.operators, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxConns: 20, ErrorLog: errorLog},
	}
	failed := make(chan error, len(servers))
	for listener, s := range servers {
		go func() { failed <- s.Serve(listener) }()
	}
	ready(public.Addr(), private.Addr())
	var served error
	select {
	case served = <-failed:
		failed <- nil // for the one that is not waited for below
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for _, s := range servers {
		served = errors.Join(served, s.Shutdown(grace))
	}
	for range servers {
		if err := <-failed; err != nil && !errors.Is(err, http.ErrServerClosed) {
			served = errors.Join(served, err)
		}
	}
	return served
}
