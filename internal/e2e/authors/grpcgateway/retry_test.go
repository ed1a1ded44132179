package main

import (
	"context"
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/culvert-go/culvert/internal/leaktest"
)

// overloaded is what a server responds that is.
func overloaded(context.Context, *pb.SimpleRequest) (*pb.SimpleResponse, error) {
	return nil, status.Error(codes.Unavailable, "overloaded")
}

// TestRetries checks which calls are sent to a second server.
func TestRetries(t *testing.T) {
	leaktest.Check(t)
	busy, good, gone := startPeer(t, "busy"), startPeer(t, "good"), startPeer(t, "gone")
	busy.unary = overloaded
	gone.stop()
	t.Run("not sent", func(t *testing.T) {
		client := pb.NewTestServiceClient(serve(t, one(Route{}, gone, good), nil).client(t, ""))
		for range 4 {
			if resp, err := client.UnaryCall(t.Context(), payload(1)); err != nil || resp.GetServerId() != "good" {
				t.Fatal(resp, err)
			}
		}
	})
	t.Run("idempotent", func(t *testing.T) {
		client := pb.NewTestServiceClient(serve(t, one(Route{Idempotent: true}, busy, good), nil).client(t, ""))
		for range 4 {
			if resp, err := client.UnaryCall(t.Context(), payload(10_000)); err != nil || resp.GetServerId() != "good" {
				t.Fatal(resp, err)
			}
		}
	})
	t.Run("not idempotent", func(t *testing.T) {
		client := pb.NewTestServiceClient(serve(t, one(Route{}, busy), nil).client(t, ""))
		_, err := client.UnaryCall(t.Context(), payload(1))
		expectCode(t, err, codes.Unavailable)
	})
	t.Run("all overloaded", func(t *testing.T) {
		busy2 := startPeer(t, "busy2")
		busy2.unary = overloaded
		client := pb.NewTestServiceClient(serve(t, one(Route{Idempotent: true}, busy, busy2), nil).client(t, ""))
		_, err := client.UnaryCall(t.Context(), payload(1))
		if got := status.Convert(err); got.Code() != codes.Unavailable || got.Message() != "overloaded" {
			t.Error(err)
		}
	})
}

// TestHedge has the first server take for ever: the second one's response counts, and the first learns of it.
func TestHedge(t *testing.T) {
	leaktest.Check(t)
	a, b := startPeer(t, "a"), startPeer(t, "b")
	first := make(chan struct{}, 1)
	first <- struct{}{}
	cancelled := make(chan string, 1)
	for _, p := range []*peer{a, b} {
		p.unary = func(ctx context.Context, in *pb.SimpleRequest) (*pb.SimpleResponse, error) {
			select {
			case <-first: // the others are fast
				<-ctx.Done()
				cancelled <- p.name
				return nil, ctx.Err()
			default:
				return p.respond(ctx, in)
			}
		}
	}
	client := pb.NewTestServiceClient(serve(t, one(Route{Idempotent: true, Hedge: Duration(50 * time.Millisecond)}, a, b), nil).client(t, ""))
	resp, err := client.UnaryCall(t.Context(), payload(50_000))
	if err != nil || len(resp.GetPayload().GetBody()) != 50_000 {
		t.Fatal(err)
	}
	if slow := <-cancelled; slow == resp.GetServerId() {
		t.Error("both attempts at", slow)
	}
	awaitServers(t, client, "a", "b") // being overtaken takes no server out
}

// TestTrace follows a call that is retried: the span of each server is a child of its own attempt's.
func TestTrace(t *testing.T) {
	leaktest.Check(t)
	spans := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	instrumented := grpc.StatsHandler(otelgrpc.NewServerHandler(
		otelgrpc.WithTracerProvider(provider), otelgrpc.WithPropagators(propagation.TraceContext{})))
	busy, good := startPeer(t, "busy", instrumented), startPeer(t, "good", instrumented)
	busy.unary = overloaded
	s := serve(t, one(Route{Idempotent: true}, busy, good), provider)
	conn := s.client(t, "", grpc.WithStatsHandler(otelgrpc.NewClientHandler(
		otelgrpc.WithTracerProvider(provider), otelgrpc.WithPropagators(propagation.TraceContext{}))))
	ctx, root := provider.Tracer("test").Start(t.Context(), "root")
	client := pb.NewTestServiceClient(conn)
	for range 2 { // one of them meets the busy server first
		if _, err := client.UnaryCall(ctx, payload(1)); err != nil {
			t.Fatal(err)
		}
	}
	root.End()
	_ = conn.Close()
	s.shutdown()
	if err := <-s.served; err != nil {
		t.Fatal(err)
	}
	busy.stop() // the ends of their spans are behind them
	good.stop()
	byID := map[trace.SpanID]tracetest.SpanStub{}
	for _, span := range spans.GetSpans() {
		byID[span.SpanContext.SpanID()] = span
	}
	var chains [][]string
	for _, span := range byID {
		if span.SpanContext.TraceID() != root.SpanContext().TraceID() {
			t.Error("another trace:", span.Name)
		}
		if span.SpanKind != trace.SpanKindServer || span.InstrumentationScope.Name == otelhttpScope {
			continue
		}
		var chain []string
		for at := span; at.Name != "root"; at = byID[at.Parent.SpanID()] {
			chain = append(chain, at.SpanKind.String()+" "+at.Name)
			if !at.Parent.IsValid() {
				t.Fatal("an end before the root:", chain)
			}
		}
		chains = append(chains, chain)
	}
	const method = "grpc.testing.TestService/UnaryCall"
	want := []string{"server " + method, "client attempt /" + method, "server " + method, "client " + method}
	if len(chains) < 3 {
		t.Errorf("%d attempts reached servers, want 3 at least", len(chains))
	}
	for _, chain := range chains {
		if !slices.Equal(chain, want) {
			t.Errorf("%q, want %q", chain, want)
		}
	}
}

const otelhttpScope = "go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
