// Command devproxy is a proxy between a browser and the servers that a front end needs during
// development: rules like those of webpack-dev-server's devServer.proxy, from a JSON or YAML
// file.
//
//	go run ./examples/devproxy -c testdata/console.yaml
//
// WebSockets work from the first request on: one handler serves plain requests and upgrades,
// without a warm-up.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
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
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "devproxy:", err)
		os.Exit(1)
	}
}

// run serves until ctx ends.
func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("devproxy", flag.ContinueOnError)
	file := flags.String("c", "", "the rules, YAML or JSON")
	backends := flags.Bool("backends", false, "serve on the targets' addresses, to try rules without servers")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *file == "" {
		return errors.New("which rules? Give a file with -c, testdata/console.yaml for instance")
	}
	content, err := readFile(*file)
	if err != nil {
		return err
	}
	c, err := parseConfig(*file, content)
	if err != nil {
		return err
	}
	d, err := newDevProxy(c, newLog(out))
	if err != nil {
		return err
	}
	h := newReloading(c, d)
	defer h.close()
	if *backends {
		b, err := startBackends(c)
		if err != nil {
			return err
		}
		defer b.close()
	}
	watching, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		h.watch(watching, content)
	}()
	defer func() { stop(); <-ended }()
	return serve(ctx, c, d, h, out)
}

func serve(ctx context.Context, c *config, d *devProxy, h http.Handler, out io.Writer) error {
	l, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return fmt.Errorf("%w (another address: \"listen\" in the rules)", err)
	}
	d.announce(out, c.scheme()+"://"+l.Addr().String())
	s := &server.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, BaseContext: func(net.Listener) context.Context { return ctx }}
	stop := context.AfterFunc(ctx, func() { s.Close() })
	defer stop()
	if c.HTTPS != nil {
		err = s.ServeTLS(l, c.HTTPS.Cert, c.HTTPS.Key)
	} else {
		err = s.Serve(l)
	}
	if !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
