package e2e

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// TestGRPC runs gRPC's own cases through a proxy over h2c, alone and behind
// filters, and checks that no call is left behind at the server.
func TestGRPC(t *testing.T) {
	server, end := startPeer(t, "grpc-server")
	group, err := upstream.New(upstream.Options{Name: "grpc", Protocol: upstream.H2C}, upstream.Target{Addr: server})
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
	program, err := peersProgram()
	if err != nil {
		t.Fatal(err)
	}
	cases, err := exec.Command(program, "grpc-client").Output()
	if err != nil || len(cases) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	quiet := slog.New(slog.DiscardHandler)
	chain := filters.NewChain(filters.Recover(quiet), filters.CombinedLog(io.Discard), filters.AccessLog(quiet), compress)
	for name, h := range map[string]http.Handler{"proxy": p, "filters": chain.Then(p)} {
		address := serveH2C(t, h)
		for c := range strings.Lines(string(cases)) {
			c = strings.TrimSpace(c)
			t.Run(name+"/"+c, func(t *testing.T) {
				if out, err := exec.Command(program, "grpc-client", c, address).CombinedOutput(); err != nil {
					t.Errorf("%v\n%s", err, out)
				}
			})
		}
	}
	group.Close()
	ended := make(chan error, 1)
	go func() { ended <- end() }() // when no call is left
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("the server: %v", err)
		}
	case <-time.After(time.Minute):
		t.Error("a call that its client has cancelled still runs at the server")
	}
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
