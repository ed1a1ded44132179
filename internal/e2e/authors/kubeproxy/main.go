// Command kubeproxy lets several users see their parts of a Kubernetes API server: of the pods and configmaps those of
// their teams, regardless of what else RBAC gives them.
//
//	kubeproxy -config kubeproxy.json
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	file := flag.String("config", "kubeproxy.json", "the configuration")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *file); err != nil {
		fmt.Fprintln(os.Stderr, "kubeproxy:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, file string) error {
	config, err := ReadConfig(file)
	if err != nil {
		return err
	}
	gateway, err := New(config, slog.New(slog.NewJSONHandler(os.Stdout, nil)))
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	l, err := net.Listen("tcp", config.Listen)
	if err != nil {
		return fmt.Errorf("%s: listen: %w", file, err)
	}
	return gateway.Serve(ctx, l)
}
