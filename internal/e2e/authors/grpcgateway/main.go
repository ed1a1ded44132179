// Command grpcgateway balances gRPC calls over servers, with a group of servers and a policy for each method.
//
//	grpcgateway -config grpcgateway.json
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

	"go.opentelemetry.io/otel"
)

func main() {
	file := flag.String("config", "grpcgateway.json", "the configuration")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *file); err != nil {
		fmt.Fprintln(os.Stderr, "grpcgateway:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, file string) error {
	config, err := ReadConfig(file)
	if err != nil {
		return err
	}
	logger := slog.New(slog.NewJSONHandler(os.Stdout, nil))
	gateway, err := New(config, logger, otel.GetTracerProvider())
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	l, err := net.Listen("tcp", config.Listen)
	if err != nil {
		return err
	}
	logger.Info("listening", "addr", l.Addr().String())
	return gateway.Serve(ctx, l)
}
