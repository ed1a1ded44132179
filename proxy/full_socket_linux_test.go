package proxy_test

import (
	"context"
	"net"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// smallest gives a socket the least room for what is sent that the kernel has.
func smallest(_, _ string, c syscall.RawConn) (err error) {
	_ = c.Control(func(fd uintptr) { err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_SNDBUF, 1) })
	return err
}

// A socket that stops accepting a request, of which the body is sent in one piece with the header, holds no exchange
// whose client has left.
func TestFullSocketAndAClientThatLeaves(t *testing.T) { onPaths(t, testFullSocketAndAClientThatLeaves) }
func testFullSocketAndAClientThatLeaves(t *testing.T, via path) {
	leaktest.Check(t)
	path := filepath.Join(t.TempDir(), "target.sock")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	group := groupAt(t, upstream.Options{WriteTimeout: time.Hour, Dialer: &net.Dialer{Control: smallest}}, "unix:"+path)
	var seen failures
	p := newProxy(t, via, proxy.Options{Upstream: group, OnError: seen.add})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer func() { _ = recover() }() // nothing is sent to a client that has left
		p.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, "PUT", "/", strings.NewReader(strings.Repeat("x", 30_000))))
	}()
	conn, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	cancel()
	wiretest.Await(t, ended, "the end of the exchange")
}
