package server_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/internal/wiretest/ownserver"
	"github.com/culvert-go/culvert/wsupgrade/wstest"
)

// The files contract_*_test.go hold what a handler and a program may rely on, and what a server refuses. Each test runs
// with net/http's server as well, so that it expects nothing else than handlers do. Where package server differs on
// purpose, the test names both results and the reason.

// kind is a server.
type kind string

const (
	netHTTP kind = "net/http"
	own     kind = "server"
)

var kinds = []kind{netHTTP, own}

// build returns a server with the fields of o.
func (k kind) build(o *http.Server) httpServer {
	if k == netHTTP {
		return o
	}
	return ownserver.New(o)
}

// httpServer is what the servers have in common beside their fields.
type httpServer interface {
	Serve(net.Listener) error
	ServeTLS(l net.Listener, certFile, keyFile string) error
	ListenAndServe() error
	ListenAndServeTLS(certFile, keyFile string) error
	Shutdown(context.Context) error
	Close() error
	RegisterOnShutdown(func())
	SetKeepAlivesEnabled(bool)
}

// onServers runs test with each server, and checks that it leaves nothing behind.
func onServers(t *testing.T, test func(t *testing.T, k kind)) {
	for _, k := range kinds {
		t.Run(string(k), func(t *testing.T) {
			leaktest.Check(t)
			test(t, k)
		})
	}
}

// onServersInBubble runs test with each server in a bubble of testing/synctest, which fails where a goroutine is left.
func onServersInBubble(t *testing.T, test func(t *testing.T, k kind)) {
	testCertificate() // made outside of the bubble
	for _, k := range kinds {
		t.Run(string(k), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, k) })
		})
	}
}

// testCertificate is httptest's.
var testCertificate = sync.OnceValue(func() []tls.Certificate {
	s := httptest.NewUnstartedServer(nil)
	s.StartTLS()
	defer s.Close()
	return s.TLS.Certificates
})

// testLog is a server's log.
type testLog struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *testLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *testLog) logger() *log.Logger { return log.New(l, "", 0) }

func (l *testLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// listen serves o on loopback until the test ends. Without an ErrorLog nothing is logged.
func (k kind) listen(t testing.TB, o *http.Server) (s httpServer, addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return k.serve(t, o, l), l.Addr().String()
}

// handle is listen for a handler.
func (k kind) handle(t testing.TB, h http.HandlerFunc) (addr string) {
	t.Helper()
	_, addr = k.listen(t, &http.Server{Handler: h})
	return addr
}

// serve serves o on l until the test ends, over TLS if o has a TLSConfig.
func (k kind) serve(t testing.TB, o *http.Server, l net.Listener) httpServer {
	t.Helper()
	if o.ErrorLog == nil {
		o.ErrorLog = wiretest.Quiet()
	}
	if o.TLSConfig != nil {
		o.TLSConfig.Certificates = testCertificate()
	}
	s := k.build(o)
	served := make(chan error, 1)
	go func() {
		if o.TLSConfig != nil {
			served <- s.ServeTLS(l, "", "")
		} else {
			served <- s.Serve(l)
		}
	}()
	t.Cleanup(func() {
		s.Close()
		if err := <-served; err != http.ErrServerClosed {
			t.Errorf("Serve returned %v", err)
		}
	})
	return s
}

// memory is a listener on connections in memory, whose deadlines follow the clock of a bubble.
type memory struct {
	conns  chan net.Conn
	once   sync.Once
	closed chan struct{}
}

func newMemory() *memory { return &memory{conns: make(chan net.Conn), closed: make(chan struct{})} }

func (l *memory) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *memory) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *memory) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1234} }

// dial connects to the listener until the test ends.
func (l *memory) dial(t testing.TB) *client {
	c := l.dialSilent(t)
	go c.collect()
	return c
}

// dialSilent is dial for a client that reads nothing.
func (l *memory) dialSilent(t testing.TB) *client {
	t.Helper()
	near, far := wstest.Pipe()
	select {
	case l.conns <- far:
	case <-l.closed:
		t.Fatal("the listener is closed")
	}
	t.Cleanup(func() { near.Close() })
	return &client{Conn: near, t: t}
}

// inBubble serves o in memory and returns a connection to it. It is called in a bubble.
func (k kind) inBubble(t testing.TB, o *http.Server) (*client, *memory) {
	t.Helper()
	l := newMemory()
	k.serve(t, o, l)
	return l.dial(t), l
}

// client is a client's end of a connection in a bubble. It collects what it receives.
type client struct {
	wstest.Conn
	t testing.TB

	mu    sync.Mutex
	got   strings.Builder
	ended bool
}

func (c *client) collect() {
	buf := make([]byte, 4<<10)
	for {
		n, err := c.Read(buf)
		c.mu.Lock()
		c.got.Write(buf[:n])
		c.ended = err != nil
		c.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// send sends s and returns what was received until every goroutine of the bubble waits.
func (c *client) send(s string) string {
	c.t.Helper()
	if _, err := io.WriteString(c, s); err != nil {
		c.t.Errorf("send: %v", err)
	}
	return c.received()
}

// received returns what was received since it was last called.
func (c *client) received() string {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.got.String()
	c.got.Reset()
	return s
}

// closed reports whether the server has closed the connection.
func (c *client) closed() bool {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended
}

// expect fails the test unless got begins with want and holds nothing else if want is empty.
func (c *client) expect(got, want string) {
	c.t.Helper()
	if !strings.HasPrefix(got, want) || want == "" && got != "" {
		c.t.Errorf("received %q, want %q", got, want)
	}
}

// after lets d of the bubble's time pass, and returns what was received meanwhile.
func (c *client) after(d time.Duration) string {
	time.Sleep(d)
	return c.received()
}
