package e2e

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"google.golang.org/grpc"
	grpccredentials "google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthgrpc "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/culvert-go/culvert/upstream"
)

// grpc-go's health server is checked over cleartext and over TLS, for the server and for one of its services, though
// the group itself speaks HTTP/1.1.
func TestGRPCHealth(t *testing.T) {
	for _, scheme := range []string{"http", "https"} {
		for _, service := range []string{"", "shop.v1.Cart"} {
			t.Run(fmt.Sprintf("%s %q", scheme, service), func(t *testing.T) { checkGRPCHealth(t, scheme, service) })
		}
	}
}

func checkGRPCHealth(t *testing.T, scheme, service string) {
	var options []grpc.ServerOption
	check := &upstream.Check{GRPC: true, GRPCService: service, Scheme: scheme, Interval: 5 * time.Millisecond, Fall: 1, Rise: 1}
	if scheme == "https" {
		certified := httptest.NewUnstartedServer(nil)
		certified.StartTLS()
		defer certified.Close()
		options = append(options, grpc.Creds(grpccredentials.NewServerTLSFromCert(&certified.TLS.Certificates[0])))
		check.TLSConfig = &tls.Config{RootCAs: certified.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs, ServerName: "example.com"}
	}
	state := health.NewServer()
	server := grpc.NewServer(options...)
	healthgrpc.RegisterHealthServer(server, state)
	state.SetServingStatus(service, healthgrpc.HealthCheckResponse_SERVING)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(l) }()
	defer server.Stop()

	changes := make(chan string, 4)
	check.OnChange = func(_ string, healthy bool, err error) { changes <- fmt.Sprint(healthy, " ", err) }
	group, err := upstream.New(upstream.Options{Name: "cart", Check: check}, upstream.Target{Addr: l.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	defer group.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, step := range []struct {
		status healthgrpc.HealthCheckResponse_ServingStatus
		want   string
	}{
		{healthgrpc.HealthCheckResponse_NOT_SERVING, "false NOT_SERVING"},
		{healthgrpc.HealthCheckResponse_SERVING, "true <nil>"},
		{healthgrpc.HealthCheckResponse_UNKNOWN, "false UNKNOWN"},
		{healthgrpc.HealthCheckResponse_SERVING, "true <nil>"},
	} {
		state.SetServingStatus(service, step.status)
		select {
		case got := <-changes:
			if got != step.want {
				t.Errorf("%s, want %s", got, step.want)
			}
		case <-ctx.Done():
			t.Fatalf("no change to %s", step.want)
		}
	}
}

// A service that grpc-go's health server does not know is bad, and the reason is gRPC's.
func TestGRPCHealthOfUnknownService(t *testing.T) {
	server := grpc.NewServer()
	healthgrpc.RegisterHealthServer(server, health.NewServer())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(l) }()
	defer server.Stop()
	changes := make(chan string, 1)
	group, err := upstream.New(upstream.Options{Protocol: upstream.H2C, Check: &upstream.Check{
		GRPC: true, GRPCService: "none", Interval: 5 * time.Millisecond, Fall: 1,
		OnChange: func(_ string, _ bool, err error) { changes <- err.Error() },
	}}, upstream.Target{Addr: l.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	defer group.Close()
	select {
	case got := <-changes:
		if got != `gRPC status "5": "unknown service"` {
			t.Errorf("the check failed by %s", got)
		}
	case <-time.After(time.Minute):
		t.Fatal("the check did not fail")
	}
}
