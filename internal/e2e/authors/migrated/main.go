// Command migrated is a gateway that was written for httputil.ReverseProxy, in before.go, and was moved to culvert by
// docs/from-httputil.md, in after.go. While its owner compares both, -before runs the former one.
package main

import (
	"context"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stderr, func(addr net.Addr) { log.Println("listening on", addr) })
	if err != nil {
		log.Fatal(err)
	}
}

// config is what both gateways need to know.
type config struct {
	app    *url.URL       // the application, below /app/ here
	roots  *x509.CertPool // of the application's certificate
	pages  *url.URL       // everything else
	tenant string
	secret []byte        // signs each request to the application
	wait   time.Duration // for the header of a response
	log    *log.Logger
}

// gateway is a handler with what is to be closed at the end.
type gateway struct {
	http.Handler
	close func()
}

func run(ctx context.Context, args []string, logs io.Writer, ready func(net.Addr)) error {
	flags := flag.NewFlagSet("migrated", flag.ContinueOnError)
	listen := flags.String("listen", "127.0.0.1:8080", "`address` to listen on")
	app := flags.String("app", "", "`URL` of the application")
	roots := flags.String("roots", "", "`file` with the application's root certificates")
	pages := flags.String("pages", "", "`URL` of the pages")
	wait := flags.Duration("wait", 30*time.Second, "time to the header of a response")
	before := flags.Bool("before", false, "run the gateway that uses httputil")
	if err := flags.Parse(args); err != nil {
		return err
	}
	c := config{tenant: "blue", secret: []byte(os.Getenv("GATEWAY_SECRET")), wait: *wait, log: log.New(logs, "", 0)}
	var err error
	if c.app, err = parse(*app); err != nil {
		return fmt.Errorf("-app: %w", err)
	}
	if c.pages, err = parse(*pages); err != nil {
		return fmt.Errorf("-pages: %w", err)
	}
	if *roots != "" {
		pem, err := os.ReadFile(*roots)
		if err != nil {
			return fmt.Errorf("-roots: %w", err)
		}
		if c.roots = x509.NewCertPool(); !c.roots.AppendCertsFromPEM(pem) {
			return fmt.Errorf("-roots: no certificate in %s", *roots)
		}
	}
	build := after
	if *before {
		build = beforehand
	}
	g, err := build(c)
	if err != nil {
		return err
	}
	defer g.close()
	return serve(ctx, *listen, g, c.log, ready)
}

func parse(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	if err == nil && (u.Scheme != "http" && u.Scheme != "https" || u.Host == "") {
		err = fmt.Errorf("%q is not the URL of a server", s)
	}
	return u, err
}

// serve serves h until ctx ends, and then finishes the requests in flight.
func serve(ctx context.Context, addr string, h http.Handler, logger *log.Logger, ready func(net.Addr)) error {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	s := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, ErrorLog: logger}
	failed := make(chan error, 1)
	go func() { failed <- s.Serve(listener) }()
	ready(listener.Addr())
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	err = s.Shutdown(grace)
	if served := <-failed; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}
