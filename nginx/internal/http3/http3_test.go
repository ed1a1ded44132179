package http3

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quic-go/quic-go"
	h3 "github.com/quic-go/quic-go/http3"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
)

func TestMain(m *testing.M) { os.Exit(leaktest.Run(m)) }

// certificate is httptest's, which is for example.com.
func certificate() (server, client *tls.Config) {
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	client = s.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	client.ServerName = "example.com"
	return &tls.Config{Certificates: s.TLS.Certificates, NextProtos: []string{"h3"}}, client
}

// fixture is a socket that is served.
type fixture struct {
	t      *testing.T
	socket *Socket
	server *Server
	client *tls.Config
	config *tls.Config
}

func (f *fixture) addr() string { return f.socket.Addr().String() }

// settings completes settings.
func (f *fixture) settings(s Settings) Settings {
	s.TLS = &tls.Config{Certificates: f.config.Certificates, NextProtos: f.config.NextProtos} // each configuration has its own
	if s.Logger == nil {
		s.Logger = slog.New(slog.DiscardHandler)
	}
	return s
}

// serve makes another Server of the socket.
func (f *fixture) serve(s Settings) *Server {
	f.t.Helper()
	server, err := f.socket.Serve(f.settings(s))
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() {
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		_ = server.Shutdown(ended)
	})
	return server
}

func start(t *testing.T, s Settings) *fixture {
	t.Helper()
	f := &fixture{t: t}
	f.config, f.client = certificate()
	udp, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	f.socket = NewSocket(udp, nil)
	f.server = f.serve(s)
	t.Cleanup(func() { _ = f.socket.Close() })
	return f
}

// dial returns a client with a connection of its own.
func (f *fixture) dial(change func(*tls.Config)) *http.Client {
	config := f.client.Clone()
	if change != nil {
		change(config)
	}
	transport := &h3.Transport{TLSClientConfig: config, DisableCompression: true,
		Dial: func(ctx context.Context, _ string, config *tls.Config, q *quic.Config) (*quic.Conn, error) {
			return quic.DialAddr(ctx, f.addr(), config, q)
		}}
	f.t.Cleanup(func() { _ = transport.Close() })
	return &http.Client{Transport: transport, Timeout: time.Minute}
}

// get returns the content of a response.
func (f *fixture) get(c *http.Client, path string) string {
	f.t.Helper()
	resp, err := c.Get("https://example.com" + path)
	if err != nil {
		f.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		f.t.Error(err)
	}
	return string(b)
}

func text(s string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, s) })
}

// Connections have the Server that is current when they are made. A former one sends GOAWAY, and ends when its requests have.
func TestFormerServer(t *testing.T) {
	started, finish := make(chan bool), make(chan bool)
	f := start(t, Settings{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/held" {
			started <- true
			<-finish
		}
		_, _ = io.WriteString(w, "former")
	})})
	held := f.dial(nil)
	got := make(chan string, 1)
	go func() { got <- f.get(held, "/held") }()
	wiretest.Await(t, started, "the request")
	f.serve(Settings{Handler: text("current")})
	ended := make(chan error, 1)
	go func() { ended <- f.server.Shutdown(context.Background()) }()
	if content := f.get(f.dial(nil), "/"); content != "current" {
		t.Errorf("a new connection got %q", content)
	}
	select {
	case err := <-ended:
		t.Errorf("ended with a request under way: %v", err)
	default:
	}
	close(finish)
	if content := wiretest.Await(t, got, "the response"); content != "former" {
		t.Errorf("the request got %q", content)
	}
	if err := wiretest.Await(t, ended, "the end"); err != nil {
		t.Error(err)
	}
	if content := f.get(held, "/"); content != "current" { // the client has followed GOAWAY
		t.Errorf("behind GOAWAY it got %q", content)
	}
}

// A Server that has retired serves no new connection, also where it has no successor.
func TestRetired(t *testing.T) {
	f := start(t, Settings{Handler: text("ok")})
	f.server.Retire()
	if resp, err := f.dial(nil).Get("https://example.com/"); err == nil {
		resp.Body.Close()
		t.Error(resp.Status)
	}
}

// What is under way when a Shutdown is cut short fails.
func TestCut(t *testing.T) {
	started := make(chan bool)
	f := start(t, Settings{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		started <- true
		<-r.Context().Done()
	})})
	failed := make(chan error, 1)
	c := f.dial(nil)
	go func() {
		resp, err := c.Get("https://example.com/")
		if err == nil {
			resp.Body.Close()
		}
		failed <- err
	}()
	wiretest.Await(t, started, "the request")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.server.Shutdown(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := wiretest.Await(t, failed, "the failure"); err == nil {
		t.Error("there was a response")
	}
}

// The contexts of requests end with the base context.
func TestBaseContext(t *testing.T) {
	base, cancel := context.WithCancel(t.Context())
	f := start(t, Settings{BaseContext: base, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
		_, _ = io.WriteString(w, "over")
	})})
	if got := f.get(f.dial(nil), "/"); got != "over" {
		t.Errorf("received %q", got)
	}
}

// A panic ends its request alone, and is logged.
func TestPanic(t *testing.T) {
	var log wiretest.Log
	f := start(t, Settings{Logger: slog.New(slog.NewTextHandler(&log, nil)), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/panic":
			panic("a bug")
		case "/abort":
			panic(http.ErrAbortHandler)
		}
		_, _ = io.WriteString(w, "ok")
	})})
	c := f.dial(nil)
	for _, path := range []string{"/abort", "/panic"} {
		if resp, err := c.Get("https://example.com" + path); err == nil {
			resp.Body.Close()
			t.Errorf("%s: %s", path, resp.Status)
		}
		if logged := strings.Contains(log.String(), "panic"); logged != (path == "/panic") {
			t.Errorf("%s: logged %q", path, log.String())
		}
	}
	if got := f.get(c, "/"); got != "ok" {
		t.Errorf("another request got %q", got)
	}
}

type connNumber struct{}

// Fields about connections are not sent, and "Connection: close" ends the connection behind its requests.
func TestConnectionFields(t *testing.T) {
	var conns atomic.Int32
	f := start(t, Settings{
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			conns.Add(1)
			return context.WithValue(ctx, connNumber{}, c)
		},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if c := r.Context().Value(connNumber{}).(net.Conn); c.RemoteAddr().String() != r.RemoteAddr || c.LocalAddr().String() == r.RemoteAddr {
				t.Errorf("the connection of %s is one from %s to %s", r.RemoteAddr, c.RemoteAddr(), c.LocalAddr())
			}
			w.Header().Set("Connection", strings.TrimPrefix(r.URL.Path, "/"))
			w.Header().Set("Keep-Alive", "timeout=5")
			w.Header().Set("Transfer-Encoding", "chunked")
			w.WriteHeader(http.StatusNoContent)
		}),
	})
	c := f.dial(nil)
	for i, path := range []string{"/keep", "/close", "/keep"} {
		resp, err := c.Get("https://example.com" + path)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		for _, name := range append(connectionFields, "Content-Length") {
			if _, has := resp.Header[name]; has {
				t.Errorf("%s: %q", name, resp.Header[name])
			}
		}
		if got, want := int(conns.Load()), 1+i/2; got != want {
			t.Errorf("request %d: %d connections, want %d", i, got, want)
		}
	}
}

// A request without a length has none where nothing follows it. A body arrives as it is sent.
func TestBodies(t *testing.T) {
	f := start(t, Settings{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		_, _ = fmt.Fprint(w, r.Proto, " ", r.ContentLength, " ", len(b), " ", err)
	})})
	c := f.dial(nil)
	for _, tt := range []struct {
		method string
		body   io.Reader
		want   string
	}{
		{"GET", nil, "HTTP/3.0 0 0 <nil>"},
		{"GET", io.MultiReader(strings.NewReader("abc")), "HTTP/3.0 -1 3 <nil>"},
		{"GET", strings.NewReader("abc"), "HTTP/3.0 3 3 <nil>"},
		{"POST", io.MultiReader(strings.NewReader("abc")), "HTTP/3.0 -1 3 <nil>"},
	} {
		r, _ := http.NewRequestWithContext(t.Context(), tt.method, "https://example.com/", tt.body)
		resp, err := c.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		got, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if string(got) != tt.want {
			t.Errorf("%s: %s, want %s", tt.method, got, tt.want)
		}
	}
}

// Trailers that a request announces are those of its copies, too, when the body has ended; others are not.
func TestTrailers(t *testing.T) {
	f := start(t, Settings{BaseContext: t.Context(), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		other := r.WithContext(r.Context())
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = fmt.Fprint(w, len(r.Trailer), r.Trailer["X-Sum"], other.Trailer["X-Sum"])
	})})
	c := f.dial(nil)
	for _, tt := range []struct {
		method, want string
		announced    bool
	}{{"GET", "1 [3] [3]", true}, {"POST", "1 [3] [3]", true}, {"POST", "0 [] []", false}} {
		r, _ := http.NewRequestWithContext(t.Context(), tt.method, "https://example.com/", io.MultiReader(strings.NewReader("abc")))
		r.Trailer = http.Header{"X-Sum": {"3"}}
		if !tt.announced {
			r.Trailer = nil
		}
		resp, err := c.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := io.ReadAll(resp.Body); string(got) != tt.want {
			t.Errorf("%s: %s, want %s", tt.method, got, tt.want)
		}
		resp.Body.Close()
	}
}

// An idle connection ends, and one with a request does not.
func TestIdle(t *testing.T) {
	closed := make(chan bool, 1)
	f := start(t, Settings{IdleTimeout: time.Millisecond, Handler: text("ok"), ConnState: func(_ net.Conn, s http.ConnState) {
		if s == http.StateClosed {
			closed <- true
		}
	}})
	_, err := quic.DialAddr(t.Context(), f.addr(), h3.ConfigureTLSConfig(f.client), nil)
	if err != nil {
		t.Fatal(err)
	}
	wiretest.Await(t, closed, "the end of the connection")
}

// With too many handshakes under way, and with Retry, clients must show that they receive what is sent to their address.
func TestRetry(t *testing.T) {
	for _, retry := range []bool{false, true} {
		f := start(t, Settings{Retry: retry, Handler: text("ok")})
		if got := f.socket.verifies(nil); got != retry {
			t.Errorf("verified: %t, want %t", got, retry)
		}
		if got := f.get(f.dial(nil), "/"); got != "ok" {
			t.Errorf("received %q", got)
		}
		if n := f.socket.started.n.Load(); n != 0 {
			t.Errorf("%d handshakes", n)
		}
		f.socket.started.n.Add(maxHandshakes)
		if !f.socket.verifies(nil) {
			t.Error("not verified")
		}
		if got := f.get(f.dial(nil), "/"); got != "ok" {
			t.Errorf("received %q", got)
		}
	}
}

// A handshake that fails is not counted any more.
func TestFailedHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h handshakes
		ctx, cancel := context.WithCancel(t.Context())
		ctx = h.begin(ctx)
		if h.n.Load() != 1 {
			t.Error("not counted")
		}
		cancel()
		synctest.Wait()
		h.accepted(ctx)
		if n := h.n.Load(); n != 0 {
			t.Errorf("%d handshakes", n)
		}
	})
}

// While a socket is suspended another process reads it.
func TestSuspend(t *testing.T) {
	f := start(t, Settings{Handler: text("first")})
	_ = f.get(f.dial(nil), "/")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	f.socket.Suspend(ended)
	file, err := f.socket.UDP().File()
	if err != nil {
		t.Fatal(err)
	}
	copied, err := net.FilePacketConn(file)
	file.Close()
	if err != nil {
		t.Fatal(err)
	}
	other := NewSocket(copied.(*net.UDPConn), nil)
	server, err := other.Serve(f.settings(Settings{Handler: text("second")}))
	if err != nil {
		t.Fatal(err)
	}
	if got := f.get(f.dial(nil), "/"); got != "second" {
		t.Errorf("received %q", got)
	}
	_ = server.Shutdown(ended)
	other.Close()
	if err := f.socket.Resume(); err != nil {
		t.Fatal(err)
	}
	if got := f.get(f.dial(nil), "/"); got != "first" {
		t.Errorf("received %q", got)
	}
}

// Tokens and resets are those of the host key.
func TestTokenKeys(t *testing.T) {
	a1, r1 := tokenKeys([]byte("one"))
	a2, r2 := tokenKeys([]byte("one"))
	a3, r3 := tokenKeys([]byte("two"))
	a4, _ := tokenKeys(nil)
	a5, _ := tokenKeys(nil)
	if a1 != a2 || r1 != r2 || a1 == a3 || r1 == r3 || a4 == a5 || string(a1[:]) == string(r1[:]) {
		t.Error("keys are not those of the host key")
	}
}

// A request whose end has not come is served nevertheless, and its body read as it comes.
func TestRequestWithoutEnd(t *testing.T) {
	before := endWait
	endWait = time.Millisecond
	t.Cleanup(func() { endWait = before })
	f := start(t, Settings{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/read" {
			_ = http.NewResponseController(w).Flush()
			b, err := io.ReadAll(r.Body)
			_, _ = fmt.Fprint(w, string(b), err)
		}
	})})
	c := f.dial(nil)
	for _, path := range []string{"/", "/read"} {
		body, end := io.Pipe()
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://example.com"+path, body)
		resp, err := c.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if path == "/read" {
			_, _ = io.WriteString(end, "content")
		}
		end.Close()
		if got, err := io.ReadAll(resp.Body); path == "/read" && (string(got) != "content<nil>" || err != nil) {
			t.Errorf("%q, %v", got, err)
		}
		resp.Body.Close()
	}
}
