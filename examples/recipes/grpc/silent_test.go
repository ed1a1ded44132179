package grpc

import (
	"context"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	grpcgo "google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	pb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/test/bufconn"

	"github.com/culvert-go/culvert/upstream"
)

// echo has a call that sends each message back.
var echo = &grpcgo.ServiceDesc{ServiceName: "echo", Streams: []grpcgo.StreamDesc{{
	StreamName: "Echo", ServerStreams: true, ClientStreams: true, Handler: func(_ any, stream grpcgo.ServerStream) error {
		for {
			message := new(pb.HealthCheckRequest)
			if err := stream.RecvMsg(message); err != nil {
				return nil
			}
			if err := stream.SendMsg(message); err != nil {
				return err
			}
		}
	},
}, {
	StreamName: "Late", ServerStreams: true, Handler: func(_ any, stream grpcgo.ServerStream) error {
		message := new(pb.HealthCheckRequest)
		if err := stream.RecvMsg(message); err != nil {
			return err
		}
		time.Sleep(time.Hour) // of the bubble's time
		return stream.SendMsg(message)
	},
}}}

// TestSilentStream has streams on which neither side sends anything for an hour: before the first message, behind it, and behind the
// whole request.
func TestSilentStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target, at := grpcgo.NewServer(), bufconn.Listen(1<<16)
		target.RegisterService(echo, nil)
		go func() { _ = target.Serve(at) }()
		defer target.Stop()
		inMemory := options
		inMemory.Check = nil // checks keep one of the connections from being silent
		inMemory.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) { return at.DialContext(ctx) }
		group, err := upstream.New(inMemory, upstream.Target{Addr: "192.0.2.1:1"})
		if err != nil {
			t.Fatal(err)
		}
		defer group.Close()
		gateway, err := Server(group)
		if err != nil {
			t.Fatal(err)
		}
		l := bufconn.Listen(1 << 16)
		go func() { _ = gateway.Serve(l) }()
		defer gateway.Close()
		conn, err := grpcgo.NewClient("passthrough:gateway", grpcgo.WithTransportCredentials(insecure.NewCredentials()),
			grpcgo.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		for i, messages := range []int{2, 1} {
			stream, err := conn.NewStream(t.Context(), &echo.Streams[i], "/echo/"+echo.Streams[i].StreamName)
			if err != nil {
				t.Fatal(err)
			}
			for range messages {
				time.Sleep(time.Hour)
				if err := stream.SendMsg(new(pb.HealthCheckRequest)); err != nil {
					t.Error(err) // RecvMsg returns why
				}
				if messages == 1 {
					_ = stream.CloseSend()
				}
				if err := stream.RecvMsg(new(pb.HealthCheckRequest)); err != nil {
					t.Fatal(err)
				}
			}
			_ = stream.CloseSend()
			if err := stream.RecvMsg(new(pb.HealthCheckRequest)); err != io.EOF {
				t.Fatal(err)
			}
		}
	})
}
