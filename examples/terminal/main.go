// Command terminal is kubectl exec in a browser: a page with a small terminal of its own, and
// culvert between it and a Kubernetes API server.
//
//	go run ./examples/terminal -demo
//	go run ./examples/terminal -server https://10.0.0.1:6443 -ca ca.crt -token-file token
//
// The page uses v4.base64.channel.k8s.io, which a browser can with text only; the server gets
// v4.channel.k8s.io. A message that a server would ignore silently, a size in the wrong encoding
// for instance, is logged.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"time"

	"github.com/culvert-go/culvert/server"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "terminal:", err)
		os.Exit(1)
	}
}

// run serves until ctx ends.
func run(ctx context.Context, args []string, out, log io.Writer) error {
	flags := flag.NewFlagSet("terminal", flag.ContinueOnError)
	listen := flags.String("listen", "127.0.0.1:8088", "a loopback `address`: every client that reaches the page has the token's rights")
	var c cluster
	flags.StringVar(&c.server, "server", "http://127.0.0.1:8001", "the API server's `URL`")
	flags.StringVar(&c.caFile, "ca", "", "the `file` with the certificates that it is trusted by; without one, the system's")
	flags.StringVar(&c.tokenFile, "token-file", "", "the `file` with the bearer token that it is sent")
	demo := flags.Bool("demo", false, "no cluster: exec into a toy shell of this program")
	if err := flags.Parse(args); err != nil {
		return err
	}
	l, err := listenOnLoopback(*listen)
	if err != nil {
		return err
	}
	defer l.Close()
	if *demo {
		d, err := startDemo()
		if err != nil {
			return err
		}
		defer d.close()
		c.server = d.url
	}
	t, err := newTerminal(c, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		return err
	}
	defer t.close()
	fmt.Fprintf(out, "http://%s/?pod=%s\n", l.Addr(), map[bool]string{true: "demo"}[*demo])
	return serve(ctx, l, t)
}

// listenOnLoopback refuses other addresses: there is no login.
func listenOnLoopback(address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	if addr, ok := l.Addr().(*net.TCPAddr); !ok || !addr.IP.IsLoopback() {
		l.Close()
		return nil, fmt.Errorf("-listen %s: not a loopback address, and the page has no login; put a gateway with one in front", address)
	}
	return l, nil
}

func serve(ctx context.Context, l net.Listener, h http.Handler) error {
	s := &server.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, BaseContext: func(net.Listener) context.Context { return ctx }}
	stop := context.AfterFunc(ctx, func() { s.Close() })
	defer stop()
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
