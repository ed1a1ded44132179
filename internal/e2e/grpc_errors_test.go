package e2e

import (
	"context"
	"net"
	"net/http"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthgrpc "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// grpc-go reads the gateway's own failures as codes with a message, for calls and for streams.
func TestGRPCErrors(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	refusing, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refusing.Close()
	gateway := func(target upstream.Target, o proxy.Options) http.Handler {
		group, err := upstream.New(upstream.Options{Protocol: upstream.H2C}, target)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { group.Close() })
		o.Upstream = group
		p, err := proxy.New(o)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	down := gateway(upstream.Target{Addr: "127.0.0.1:1", Down: true}, proxy.Options{})
	auth := func(code int) http.Handler {
		f, err := filters.ForwardAuth(filters.ForwardAuthOptions{To: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) })})
		if err != nil {
			t.Fatal(err)
		}
		return filters.NewChain(f).Then(down)
	}
	for name, test := range map[string]struct {
		h    http.Handler
		want *status.Status
	}{
		"no target": {down, status.New(codes.Unavailable, "Service Unavailable")},
		"refused":   {gateway(upstream.Target{Addr: refusing.Addr().String()}, proxy.Options{}), status.New(codes.Unavailable, "Bad Gateway")},
		"silent":    {gateway(upstream.Target{Addr: silent.Addr().String()}, proxy.Options{Timeout: 200 * time.Millisecond}), status.New(codes.DeadlineExceeded, "Gateway Timeout")},
		"401":       {auth(401), status.New(codes.Unauthenticated, "Unauthorized")},
		"403":       {auth(403), status.New(codes.PermissionDenied, "Forbidden")},
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := grpc.NewClient(serveH2C(t, test.h), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDisableRetry())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			client := healthgrpc.NewHealthClient(conn)
			_, err = client.Check(ctx, &healthgrpc.HealthCheckRequest{})
			if got := status.Convert(err); got.Code() != test.want.Code() || got.Message() != test.want.Message() {
				t.Errorf("call: %v, want %v", got, test.want)
			}
			stream, err := client.Watch(ctx, &healthgrpc.HealthCheckRequest{})
			if err == nil {
				_, err = stream.Recv()
			}
			if got := status.Convert(err); got.Code() != test.want.Code() || got.Message() != test.want.Message() {
				t.Errorf("stream: %v, want %v", got, test.want)
			}
		})
	}
}
