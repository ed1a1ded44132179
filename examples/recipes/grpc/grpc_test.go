package grpc_test

import (
	"context"
	"net"
	"testing"

	grpcgo "google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	pb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/culvert-go/culvert/examples/recipes/grpc"
	"github.com/culvert-go/culvert/upstream"
)

func listen(t *testing.T) net.Listener {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestThroughGateway(t *testing.T) {
	service := health.NewServer()
	target, at := grpcgo.NewServer(), listen(t)
	pb.RegisterHealthServer(target, service)
	go func() { _ = target.Serve(at) }()
	defer target.Stop()

	group, err := grpc.Targets(upstream.Target{Addr: at.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	defer group.Close()
	gateway, err := grpc.Server(group)
	if err != nil {
		t.Fatal(err)
	}
	l := listen(t)
	go func() { _ = gateway.Serve(l) }()
	defer gateway.Close()

	conn, err := grpcgo.NewClient(l.Addr().String(), grpcgo.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	client := pb.NewHealthClient(conn)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()

	if resp, err := client.Check(ctx, &pb.HealthCheckRequest{}); err != nil || resp.Status != pb.HealthCheckResponse_SERVING {
		t.Errorf("a call: %v, %v", resp, err)
	}
	if _, err := client.Check(ctx, &pb.HealthCheckRequest{Service: "unknown"}); status.Code(err) != codes.NotFound {
		t.Errorf("a call that fails: %v", err)
	}
	watch, err := client.Watch(ctx, &pb.HealthCheckRequest{Service: "cart"})
	if err != nil {
		t.Fatal(err)
	}
	// Each message is received before the next one is sent.
	for _, want := range []pb.HealthCheckResponse_ServingStatus{pb.HealthCheckResponse_SERVICE_UNKNOWN, pb.HealthCheckResponse_NOT_SERVING, pb.HealthCheckResponse_SERVING} {
		if want != pb.HealthCheckResponse_SERVICE_UNKNOWN {
			service.SetServingStatus("cart", want)
		}
		if m, err := watch.Recv(); err != nil || m.Status != want {
			t.Fatalf("a stream: %v, %v; want %v", m, err, want)
		}
	}
}
