package main

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/culvert-go/culvert/internal/leaktest"
)

// one is a configuration with one group.
func one(route Route, peers ...*peer) Config {
	route.Group = "test"
	c := Config{Groups: map[string]Group{}, Routes: map[string]Route{testService: route}}
	c.Groups["test"] = Group{Targets: addrs(peers...)}
	return c
}

func addrs(peers ...*peer) []string {
	var list []string
	for _, p := range peers {
		list = append(list, p.addr)
	}
	return list
}

// TestCalls makes calls of each kind in cleartext and over TLS on both sides.
func TestCalls(t *testing.T) {
	t.Run("cleartext", func(t *testing.T) {
		leaktest.Check(t)
		calls(t, serve(t, one(Route{}, startPeer(t, "a")), nil).client(t, ""))
	})
	t.Run("TLS", func(t *testing.T) {
		leaktest.Check(t)
		cert, key, pair := certificate(t)
		c := one(Route{}, startPeer(t, "a", grpc.Creds(credentials.NewServerTLSFromCert(&pair))))
		c.Cert, c.Key = cert, key
		c.Groups["test"] = Group{Targets: c.Groups["test"].Targets, CA: cert, ServerName: "localhost"}
		calls(t, serve(t, c, nil).client(t, cert))
	})
	t.Run("idempotent and hedged", func(t *testing.T) {
		leaktest.Check(t)
		c := one(Route{Idempotent: true}, startPeer(t, "a"))
		c.Routes[unaryCall] = Route{Group: "test", Idempotent: true, Hedge: Duration(time.Hour)}
		calls(t, serve(t, c, nil).client(t, ""))
	})
}

func calls(t *testing.T, conn *grpc.ClientConn) {
	client := pb.NewTestServiceClient(conn)
	var header, trailer metadata.MD
	ctx := metadata.AppendToOutgoingContext(t.Context(), "echo-bin", "\x00\xff")
	resp, err := client.UnaryCall(ctx, payload(100_000), grpc.Header(&header), grpc.Trailer(&trailer))
	if err != nil || len(resp.GetPayload().GetBody()) != 100_000 {
		t.Fatal(len(resp.GetPayload().GetBody()), err)
	}
	if header.Get("echo-bin")[0] != "\x00\xff" || trailer.Get("bye-bin")[0] != "\x00\xff" {
		t.Error("metadata:", header, trailer)
	}
	in, err := client.StreamingInputCall(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		if err := in.Send(&pb.StreamingInputCallRequest{Payload: &pb.Payload{Body: make([]byte, 50_000)}}); err != nil {
			t.Fatal(err)
		}
	}
	if sum, err := in.CloseAndRecv(); err != nil || sum.GetAggregatedPayloadSize() != 500_000 {
		t.Error(sum, err)
	}
	out, err := client.StreamingOutputCall(t.Context(), &pb.StreamingOutputCallRequest{ResponseParameters: []*pb.ResponseParameters{{Size: 10}, {Size: 200_000}, {}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{10, 200_000, 0} {
		if got, err := out.Recv(); err != nil || len(got.GetPayload().GetBody()) != size {
			t.Fatal(len(got.GetPayload().GetBody()), err)
		}
	}
	if _, err := out.Recv(); !errors.Is(err, io.EOF) || out.Trailer().Get("count")[0] != "all" {
		t.Error(err, out.Trailer())
	}
	both, err := client.FullDuplexCall(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		pingPong(t, both, i)
	}
	if err := both.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if _, err := both.Recv(); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
}

// pingPong sends a message and awaits that it comes back.
func pingPong(t *testing.T, stream pb.TestService_FullDuplexCallClient, size int) {
	t.Helper()
	if err := stream.Send(&pb.StreamingOutputCallRequest{Payload: &pb.Payload{Body: make([]byte, size)}}); err != nil {
		t.Fatal(err)
	}
	if got, err := stream.Recv(); err != nil || len(got.GetPayload().GetBody()) != size {
		t.Fatal(len(got.GetPayload().GetBody()), err)
	}
}

// TestStatusesPass checks that a server's status reaches the client with its details.
func TestStatusesPass(t *testing.T) {
	p := startPeer(t, "a")
	want, err := status.New(codes.FailedPrecondition, "50 % full: äöü").WithDetails(durationpb.New(time.Second))
	if err != nil {
		t.Fatal(err)
	}
	p.unary = func(context.Context, *pb.SimpleRequest) (*pb.SimpleResponse, error) { return nil, want.Err() }
	for name, route := range map[string]Route{"plain": {}, "idempotent": {Idempotent: true}, "hedged": {Idempotent: true, Hedge: Duration(time.Hour)}} {
		t.Run(name, func(t *testing.T) {
			client := pb.NewTestServiceClient(serve(t, one(route, p), nil).client(t, ""))
			_, err := client.UnaryCall(t.Context(), payload(1))
			if got := status.Convert(err); got.Code() != want.Code() || got.Message() != want.Message() || len(got.Details()) != 1 {
				t.Errorf("%v with %d details", got, len(got.Details()))
			}
		})
	}
}

// TestDeadlinesAndCancels checks that a server learns of a client's deadline, and of a client that has gone.
func TestDeadlinesAndCancels(t *testing.T) {
	leaktest.Check(t)
	p := startPeer(t, "a")
	deadlines := make(chan bool, 1)
	ended := make(chan error, 1)
	p.unary = func(ctx context.Context, _ *pb.SimpleRequest) (*pb.SimpleResponse, error) {
		_, ok := ctx.Deadline()
		deadlines <- ok
		<-ctx.Done()
		ended <- ctx.Err()
		return nil, ctx.Err()
	}
	client := pb.NewTestServiceClient(serve(t, one(Route{}, p), nil).client(t, ""))
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := client.UnaryCall(ctx, payload(1)); status.Code(err) != codes.DeadlineExceeded {
		t.Error(err)
	}
	if !<-deadlines || <-ended == nil {
		t.Error("the server has no deadline")
	}
	ctx, cancel = context.WithCancel(t.Context())
	stream, err := client.FullDuplexCall(ctx)
	if err != nil {
		t.Fatal(err)
	}
	pingPong(t, stream, 5)
	cancel()
	if err := <-p.ended; err == nil {
		t.Error("the server's stream was not cancelled")
	}
}

// TestFailuresOfTheGateway checks that clients understand them.
func TestFailuresOfTheGateway(t *testing.T) {
	leaktest.Check(t)
	slow, gone := startPeer(t, "slow"), startPeer(t, "gone")
	gone.stop()
	slow.unary = func(ctx context.Context, _ *pb.SimpleRequest) (*pb.SimpleResponse, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	s := serve(t, Config{
		Groups: map[string]Group{"slow": {Targets: addrs(slow)}, "gone": {Targets: addrs(gone)}, "empty": {}},
		Routes: map[string]Route{
			unaryCall: {Group: "slow", Timeout: Duration(200 * time.Millisecond)},
			emptyCall: {Group: "gone"},
			"/grpc.testing.TestService/StreamingOutputCall": {Group: "empty"},
		},
	}, nil)
	client := pb.NewTestServiceClient(s.client(t, ""))
	_, err := client.UnaryCall(t.Context(), payload(1))
	expectCode(t, err, codes.DeadlineExceeded)
	_, err = client.EmptyCall(t.Context(), &pb.Empty{})
	expectCode(t, err, codes.Unavailable)
	out, err := client.StreamingOutputCall(t.Context(), &pb.StreamingOutputCallRequest{})
	if err == nil {
		_, err = out.Recv()
	}
	expectCode(t, err, codes.Unavailable)
	_, err = client.UnimplementedCall(t.Context(), &pb.Empty{})
	expectCode(t, err, codes.Unimplemented)
	if !strings.Contains(err.Error(), "UnimplementedCall") {
		t.Error(err)
	}
	transport := &http.Transport{Protocols: new(http.Protocols)}
	defer transport.CloseIdleConnections()
	transport.Protocols.SetUnencryptedHTTP2(true)
	resp, err := (&http.Client{Transport: transport}).Get("http://" + s.addr + "/")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusUnsupportedMediaType {
		t.Error(resp.Status)
	}
}

func expectCode(t *testing.T, err error, want codes.Code) {
	t.Helper()
	if status.Code(err) != want {
		t.Errorf("%v, want %v", err, want)
	}
}

// TestMethodsHaveTargets sends one method of a service to a group of its own.
func TestMethodsHaveTargets(t *testing.T) {
	a, b := startPeer(t, "a"), startPeer(t, "b")
	c := one(Route{}, a)
	c.Groups["other"] = Group{Targets: addrs(b)}
	c.Routes[emptyCall] = Route{Group: "other"}
	client := pb.NewTestServiceClient(serve(t, c, nil).client(t, ""))
	for range 5 {
		var header metadata.MD
		if _, err := client.EmptyCall(t.Context(), &pb.Empty{}, grpc.Header(&header)); err != nil || header.Get(serverOfTheCall)[0] != "b" {
			t.Fatal(header, err)
		}
		if resp, err := client.UnaryCall(t.Context(), payload(1)); err != nil || resp.GetServerId() != "a" {
			t.Fatal(resp, err)
		}
	}
}

// TestHealth has a server leave its group, and balancers in front learn of the gateway's end.
func TestHealth(t *testing.T) {
	leaktest.Check(t)
	a, b := startPeer(t, "a"), startPeer(t, "b")
	for _, p := range []*peer{a, b} {
		p.health.SetServingStatus("shop", healthpb.HealthCheckResponse_SERVING)
	}
	c := one(Route{}, a, b)
	service := "shop"
	c.Groups["test"] = Group{Targets: addrs(a, b), Health: &service, CheckInterval: Duration(20 * time.Millisecond)}
	s := serve(t, c, nil)
	conn := s.client(t, "")
	watch, err := healthpb.NewHealthClient(conn).Watch(t.Context(), &healthpb.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := watch.Recv(); err != nil || got.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		t.Fatal(got, err)
	}
	client := pb.NewTestServiceClient(conn)
	awaitServers(t, client, "a", "b")
	a.health.SetServingStatus("shop", healthpb.HealthCheckResponse_NOT_SERVING)
	awaitServers(t, client, "b")
	a.health.SetServingStatus("shop", healthpb.HealthCheckResponse_SERVING)
	awaitServers(t, client, "a", "b")
	s.shutdown()
	if got, err := watch.Recv(); err != nil || got.GetStatus() != healthpb.HealthCheckResponse_NOT_SERVING {
		t.Error(got, err)
	}
	_ = conn.Close()
	if err := <-s.served; err != nil {
		t.Error(err)
	}
}

// awaitServers makes calls until twenty in a row were served by exactly these servers.
func awaitServers(t *testing.T, client pb.TestServiceClient, names ...string) {
	t.Helper()
	for {
		seen := map[string]bool{}
		for range 20 {
			resp, err := client.UnaryCall(t.Context(), payload(1))
			if err != nil {
				t.Fatal(err)
			}
			seen[resp.GetServerId()] = true
		}
		same := len(seen) == len(names)
		for _, name := range names {
			same = same && seen[name]
		}
		if same {
			return
		}
	}
}

// TestShutdown lets a stream end, and cuts another one after the grace.
func TestShutdown(t *testing.T) {
	for _, cut := range []bool{false, true} {
		leaktest.Check(t)
		p := startPeer(t, "a")
		c := one(Route{}, p)
		if cut {
			c.Grace = Duration(100 * time.Millisecond)
		}
		s := serve(t, c, nil)
		stream, err := pb.NewTestServiceClient(s.client(t, "")).FullDuplexCall(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		pingPong(t, stream, 1)
		s.shutdown()
		if cut {
			if err := <-s.served; err == nil || !strings.Contains(err.Error(), "cut") {
				t.Error(err)
			}
			_, err := stream.Recv()
			expectCode(t, err, codes.Unavailable)
			continue
		}
		for { // until the gateway does not listen any more
			conn, err := net.Dial("tcp", s.addr)
			if err != nil {
				break
			}
			conn.Close()
		}
		pingPong(t, stream, 2)
		if err := stream.CloseSend(); err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
			t.Error(err)
		}
		if err := <-s.served; err != nil {
			t.Error(err)
		}
	}
}

// TestConfigErrors checks that errors name what is wrong.
func TestConfigErrors(t *testing.T) {
	leaktest.Check(t)
	const group = `"groups":{"g":{"targets":["127.0.0.1:1"]}}`
	for text, want := range map[string]string{
		`{`:               "unexpected EOF",
		`{"routs":{}}`:    `"routs"`,
		`{` + group + `}`: "routes: there are none",
		`{"routes":{"/s/":{"group":"h"}},` + group + `}`:                                       `no group "h"`,
		`{"routes":{"s.M":{"group":"g"}},` + group + `}`:                                       `"s.M"`,
		`{"routes":{"/s/m":{"group":"g","hedge":"1s"}},` + group + `}`:                         "/s/m: hedge needs idempotent",
		`{"routes":{"/s/m":{"group":"g","timeout":"-1s"}},` + group + `}`:                      "-1s",
		`{"routes":{"/s/m":{"group":"g"}},"cert":"c",` + group + `}`:                           "cert and key",
		`{"routes":{"/s/":{"group":"g"}},"groups":{"g":{"targets":["http://a"]}}}`:             `groups: g: `,
		`{"routes":{"/s/":{"group":"g"}},"groups":{"g":{"targets":["a:1"],"ca":"missing"}}}`:   "missing",
		`{"routes":{"/s/":{"group":"g"}},"groups":{"g":{"targets":["a:1"],"serverName":"x"}}}`: "serverName needs ca",
		`{"routes":{"/s/":{"group":"g"}},` + group + `,"cert":"c","key":"k"}`:                  "open c",
		`{"routes":{"/s/":{"group":"g"}},` + group + `,"listen":"127.0.0.1:x"}`:                "unknown port",
	} {
		file := filepath.Join(t.TempDir(), "config.json")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := run(t.Context(), file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
