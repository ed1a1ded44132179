// Command http3edge serves HTTP/1, 2 and 3 on one port, in front of targets that speak HTTP/1 or HTTP/3.
//
//	http3edge -config http3edge.json
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	file := flag.String("config", "http3edge.json", "the configuration")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *file); err != nil {
		fmt.Fprintln(os.Stderr, "http3edge:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, file string) error {
	config, err := ReadConfig(file)
	if err != nil {
		return err
	}
	edge, err := New(config, slog.New(slog.NewJSONHandler(os.Stdout, nil)))
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	listeners, err := Listen(config)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return edge.Serve(ctx, listeners)
}
