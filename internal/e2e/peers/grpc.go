package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/interop"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
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

// grpcClient runs a case, which ends the process if it fails. Without arguments it prints the names of all cases.
func grpcClient() error {
	if len(os.Args) != 3 {
		for _, name := range slices.Sorted(maps.Keys(grpcCases)) {
			fmt.Println(name)
		}
		return nil
	}
	cc, err := grpc.NewClient(os.Args[2], grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer cc.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	grpcCases[os.Args[1]](ctx, cc)
	return nil
}

// grpcServer ends when no call is left.
func grpcServer() error {
	server := grpc.NewServer()
	testgrpc.RegisterTestServiceServer(server, interop.NewTestServer())
	l, err := listen()
	if err != nil {
		return err
	}
	go func() { _ = server.Serve(l) }()
	untilInputEnds()
	server.GracefulStop()
	return nil
}
