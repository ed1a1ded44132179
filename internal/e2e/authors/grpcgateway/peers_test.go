package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
)

const (
	unaryCall       = "/grpc.testing.TestService/UnaryCall"
	emptyCall       = "/grpc.testing.TestService/EmptyCall"
	testService     = "/grpc.testing.TestService/"
	serverOfTheCall = "server" // the header field in which a peer names itself
)

// peer is a grpc-go server.
type peer struct {
	pb.UnimplementedTestServiceServer
	name, addr string
	health     *health.Server
	stop       func()
	// unary, if not nil, is called with each unary call.
	unary func(context.Context, *pb.SimpleRequest) (*pb.SimpleResponse, error)
	// ended receives the error of the context of each stream that has ended.
	ended chan error
}

func startPeer(t *testing.T, name string, o ...grpc.ServerOption) *peer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &peer{name: name, addr: l.Addr().String(), health: health.NewServer(), ended: make(chan error, 100)}
	s := grpc.NewServer(o...)
	pb.RegisterTestServiceServer(s, p)
	healthpb.RegisterHealthServer(s, p.health)
	p.stop = s.Stop
	go func() { _ = s.Serve(l) }()
	t.Cleanup(s.Stop)
	return p
}

func (p *peer) EmptyCall(ctx context.Context, in *pb.Empty) (*pb.Empty, error) {
	_, err := p.UnaryCall(ctx, &pb.SimpleRequest{})
	return in, err
}

func (p *peer) UnaryCall(ctx context.Context, in *pb.SimpleRequest) (*pb.SimpleResponse, error) {
	if p.unary != nil {
		return p.unary(ctx, in)
	}
	return p.respond(ctx, in)
}

// respond sends the payload back, and the metadata "echo" as a header field and a trailer.
func (p *peer) respond(ctx context.Context, in *pb.SimpleRequest) (*pb.SimpleResponse, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	_ = grpc.SetHeader(ctx, metadata.MD{serverOfTheCall: {p.name}, "echo-bin": md["echo-bin"]})
	_ = grpc.SetTrailer(ctx, metadata.MD{"bye-bin": md["echo-bin"]})
	return &pb.SimpleResponse{Payload: in.GetPayload(), ServerId: p.name}, nil
}

func (p *peer) StreamingInputCall(stream pb.TestService_StreamingInputCallServer) error {
	size := 0
	for {
		in, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return stream.SendAndClose(&pb.StreamingInputCallResponse{AggregatedPayloadSize: int32(size)})
		}
		if err != nil {
			return err
		}
		size += len(in.GetPayload().GetBody())
	}
}

func (p *peer) StreamingOutputCall(in *pb.StreamingOutputCallRequest, stream pb.TestService_StreamingOutputCallServer) error {
	for _, parameters := range in.GetResponseParameters() {
		if err := stream.Send(&pb.StreamingOutputCallResponse{Payload: &pb.Payload{Body: make([]byte, parameters.GetSize())}}); err != nil {
			return err
		}
	}
	stream.SetTrailer(metadata.Pairs("count", "all"))
	return nil
}

// FullDuplexCall sends each message back until the client sends no more.
func (p *peer) FullDuplexCall(stream pb.TestService_FullDuplexCallServer) error {
	defer func() { p.ended <- stream.Context().Err() }()
	for {
		in, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := stream.Send(&pb.StreamingOutputCallResponse{Payload: in.GetPayload()}); err != nil {
			return err
		}
	}
}

// gatewayUnderTest is a gateway that serves.
type gatewayUnderTest struct {
	addr string
	// shutdown begins the end of Serve, and served receives its error.
	shutdown context.CancelFunc
	served   chan error
}

func serve(t *testing.T, c Config, provider trace.TracerProvider) *gatewayUnderTest {
	t.Helper()
	if provider == nil {
		provider = noop.NewTracerProvider()
	}
	g, err := New(c, slog.New(slog.NewTextHandler(t.Output(), nil)), provider)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, shutdown := context.WithCancel(context.Background())
	s := &gatewayUnderTest{addr: l.Addr().String(), shutdown: shutdown, served: make(chan error, 1)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.served <- g.Serve(ctx, l)
	}()
	t.Cleanup(func() {
		shutdown()
		<-ended
	})
	return s
}

// client returns a connection to the gateway. It trusts the authorities in the file ca; "" means cleartext.
func (s *gatewayUnderTest) client(t *testing.T, ca string, o ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	transport := insecure.NewCredentials()
	if ca != "" {
		var err error
		if transport, err = credentials.NewClientTLSFromFile(ca, "localhost"); err != nil {
			t.Fatal(err)
		}
	}
	conn, err := grpc.NewClient(s.addr, append(o, grpc.WithTransportCredentials(transport))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// payload is a request with content of a size.
func payload(size int) *pb.SimpleRequest {
	return &pb.SimpleRequest{Payload: &pb.Payload{Body: make([]byte, size)}}
}

// certificate makes a certificate for localhost that is its own authority.
func certificate(t *testing.T) (certFile, keyFile string, pair tls.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for file, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "PRIVATE KEY", Bytes: keyDER}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if pair, err = tls.LoadX509KeyPair(certFile, keyFile); err != nil {
		t.Fatal(err)
	}
	return certFile, keyFile, pair
}
