package e2e

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"sort"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/interop"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"

	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// The environment in which this test binary is one gRPC interop client: gRPC's own
// cases end their process when they fail.
const (
	grpcCase    = "CULVERT_TEST_GRPC_CASE"
	grpcAddress = "CULVERT_TEST_GRPC_ADDRESS"
)

// grpcCases are gRPC's interop cases that need no credentials
// (github.com/grpc/grpc/blob/master/doc/interop-test-descriptions.md).
var grpcCases = map[string]func(context.Context, *grpc.ClientConn){
	"cancel_after_begin":          withClient(interop.DoCancelAfterBegin),
	"cancel_after_first_response": withClient(interop.DoCancelAfterFirstResponse),
	"client_streaming":            withClient(interop.DoClientStreaming),
	"custom_metadata":             withClient(interop.DoCustomMetadata),
	"empty_stream":                withClient(interop.DoEmptyStream),
	"empty_unary":                 withClient(interop.DoEmptyUnaryCall),
	"large_unary":                 withClient(interop.DoLargeUnaryCall),
	"large_unary, gzip":           withClient(interop.DoLargeUnaryCall, grpc.UseCompressor(gzip.Name)),
	"ping_pong":                   withClient(interop.DoPingPong),
	"server_streaming":            withClient(interop.DoServerStreaming),
	"special_status_message":      withClient(interop.DoSpecialStatusMessage),
	"status_code_and_message":     withClient(interop.DoStatusCodeAndMessage),
	"timeout_on_sleeping_server":  withClient(interop.DoTimeoutOnSleepingServer),
	"unimplemented_method":        interop.DoUnimplementedMethod,
	"unimplemented_service": func(ctx context.Context, cc *grpc.ClientConn) {
		interop.DoUnimplementedService(ctx, testgrpc.NewUnimplementedServiceClient(cc))
	},
	"rpc_soak": func(ctx context.Context, cc *grpc.ClientConn) { soak(ctx, cc) },
}

func withClient(f func(context.Context, testgrpc.TestServiceClient, ...grpc.CallOption), args ...grpc.CallOption) func(context.Context, *grpc.ClientConn) {
	return func(ctx context.Context, cc *grpc.ClientConn) { f(ctx, testgrpc.NewTestServiceClient(cc), args...) }
}

// soak makes many calls over one connection.
func soak(ctx context.Context, cc *grpc.ClientConn) {
	for range 300 {
		interop.DoLargeUnaryCall(ctx, testgrpc.NewTestServiceClient(cc))
	}
}

// runGRPCCase is the client's process.
func runGRPCCase() int {
	cc, err := grpc.NewClient(os.Getenv(grpcAddress), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer cc.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	grpcCases[os.Getenv(grpcCase)](ctx, cc)
	return 0
}

// TestGRPC runs gRPC's own cases through a proxy over h2c, alone and behind
// filters, and checks that no call is left behind at the server.
func TestGRPC(t *testing.T) {
	server := grpc.NewServer()
	testgrpc.RegisterTestServiceServer(server, interop.NewTestServer())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go server.Serve(l)
	group, err := upstream.New(upstream.Options{Name: "grpc", Protocol: upstream.H2C}, upstream.Target{Addr: l.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	p, err := proxy.New(proxy.Options{Upstream: group})
	if err != nil {
		t.Fatal(err)
	}
	compress, err := filters.Compress(filters.CompressOptions{ContentTypes: []string{"*"}})
	if err != nil {
		t.Fatal(err)
	}
	quiet := slog.New(slog.DiscardHandler)
	chain := filters.NewChain(filters.Recover(quiet), filters.CombinedLog(io.Discard), filters.AccessLog(quiet), compress)
	for name, h := range map[string]http.Handler{"proxy": p, "filters": chain.Then(p)} {
		address := serveH2C(t, h)
		for _, c := range sortedCases() {
			t.Run(name+"/"+c, func(t *testing.T) {
				cmd := exec.Command(os.Args[0])
				cmd.Env = append(os.Environ(), grpcCase+"="+c, grpcAddress+"="+address)
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Errorf("%v\n%s", err, out)
				}
			})
		}
	}
	group.Close()
	ended := make(chan struct{})
	go func() {
		server.GracefulStop() // returns when no call is left
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Error("a call that its client has cancelled still runs at the server")
		server.Stop()
	}
}

func sortedCases() (list []string) {
	for c := range grpcCases {
		list = append(list, c)
	}
	sort.Strings(list)
	return list
}

// serveH2C serves h over HTTP/2 without TLS until the test ends.
func serveH2C(t *testing.T, h http.Handler) (address string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: h, Protocols: new(http.Protocols), ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	s.Protocols.SetUnencryptedHTTP2(true)
	go s.Serve(l)
	t.Cleanup(func() { s.Close() })
	return l.Addr().String()
}
