package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	coder "github.com/coder/websocket"
	"github.com/culvert-go/culvert/internal/e2e/authors/peers"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/gorilla/websocket"
)

func TestMain(m *testing.M) { os.Exit(leaktest.Run(m)) }

// backends are the servers of two users. Each sends "welcome USER" and then what it receives, and reports the code with which
// a WebSocket has ended.
type backends struct {
	coder, gorilla string // URLs
	ended          chan int
}

func startBackends(t *testing.T) *backends {
	b := &backends{ended: make(chan int, 100)}
	b.coder = peers.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := coder.Accept(w, r, &coder.AcceptOptions{InsecureSkipVerify: true, CompressionMode: coder.CompressionContextTakeover})
		if err != nil {
			return
		}
		defer conn.CloseNow()
		conn.SetReadLimit(1 << 20)
		err = conn.Write(r.Context(), coder.MessageText, []byte("welcome "+r.Header.Get("X-User")+r.Header.Get("Cookie")))
		for err == nil {
			var kind coder.MessageType
			var data []byte
			if kind, data, err = conn.Read(r.Context()); err == nil {
				err = conn.Write(r.Context(), kind, data)
			}
		}
		b.ended <- int(coder.CloseStatus(err))
	})).URL
	upgrader := websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }, EnableCompression: true}
	b.gorilla = peers.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer conn.Close()
		err = conn.WriteMessage(websocket.TextMessage, []byte("welcome "+r.Header.Get("X-User")+r.Header.Get("Cookie")))
		for err == nil {
			var kind int
			var data []byte
			if kind, data, err = conn.ReadMessage(); err == nil {
				err = conn.WriteMessage(kind, data)
			}
		}
		b.ended <- closeCode(err)
	})).URL
	return b
}

func closeCode(err error) int {
	var closed *websocket.CloseError
	if errors.As(err, &closed) {
		return closed.Code
	}
	return -1
}

// started is the program with its backends.
type started struct {
	*backends
	addr string
	tls  *tls.Config
	logs *lines
	stop func() error
}

// lines passes on each line that is written: slog writes one record at a time.
type lines struct{ c chan map[string]any }

func (l *lines) Write(p []byte) (int, error) {
	record := map[string]any{}
	err := json.Unmarshal(p, &record)
	l.c <- record
	return len(p), err
}

func start(t *testing.T, args ...string) *started {
	s := &started{backends: startBackends(t), logs: &lines{make(chan map[string]any, 1000)}}
	cert, key, pool := peers.Certificate(t, "gateway.test", "127.0.0.1")
	s.tls = &tls.Config{RootCAs: pool, ServerName: "gateway.test"}
	args = append([]string{"-listen", "127.0.0.1:0", "-cert", cert, "-key", key, "-users", s.users(t), "-origins", "https://app.test"}, args...)
	s.addr, s.stop = peers.Program(t, func(ctx context.Context, ready func(net.Addr)) error { return run(ctx, args, s.logs, ready) })
	return s
}

func (s *started) users(t *testing.T) (file string) {
	content, err := json.Marshal(map[string]map[string]string{
		"s-ann":  {"user": "ann", "target": s.coder},
		"s-bob":  {"user": "bob", "target": s.gorilla},
		"s-carl": {"user": "carl", "target": "http://" + wiretest.Unused(t)},
	})
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "users.json")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// dial opens a WebSocket of gorilla's client. The response has the status of one that is refused.
func (s *started) dial(t *testing.T, session string, header ...string) (*websocket.Conn, *http.Response) {
	t.Helper()
	fields := http.Header{"Cookie": {"session=" + session}, "Origin": {"https://app.test"}}
	for i := 0; i < len(header); i += 2 {
		fields.Set(header[i], header[i+1])
	}
	dialer := websocket.Dialer{TLSClientConfig: s.tls, EnableCompression: true, NetDialContext: s.dialNet}
	conn, response, err := dialer.Dial("wss://gateway.test/chat", fields)
	if err != nil {
		if response == nil {
			t.Fatal(err)
		}
		return nil, response
	}
	t.Cleanup(func() { conn.Close() })
	return conn, response
}

func (s *started) dialNet(ctx context.Context, _, _ string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "tcp", s.addr)
}

// ended returns the record of the next tunnel that has ended.
func (s *started) ended(t *testing.T) map[string]any {
	for {
		if r := wiretest.Await(t, s.logs.c, "the record of a tunnel"); r["msg"] == "request" && r["status"] == 101.0 {
			return r
		}
	}
}

func expect(t *testing.T, conn *websocket.Conn, want string) {
	t.Helper()
	if _, data, err := conn.ReadMessage(); err != nil || string(data) != want {
		t.Fatalf("received %.80q, %v, want %.80q", data, err, want)
	}
}

// Each user reaches the server of their own, by both libraries, with and without an observer of the messages.
func TestEcho(t *testing.T) {
	for name, args := range map[string][]string{"bytes": nil, "observed": {"-forbidden", "secret"}} {
		t.Run(name, func(t *testing.T) {
			s := start(t, args...)
			long := strings.Repeat("long and longer ", 5000)
			for session, user := range map[string]string{"s-ann": "ann", "s-bob": "bob"} {
				conn, _ := s.dial(t, session)
				expect(t, conn, "welcome "+user)
				for _, message := range []string{"", "hello", long} {
					if err := conn.WriteMessage(websocket.TextMessage, []byte(message)); err != nil {
						t.Fatal(err)
					}
					expect(t, conn, message)
				}
				_ = conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(4000, "bye"), time.Now().Add(time.Minute))
				if _, _, err := conn.ReadMessage(); closeCode(err) != 4000 {
					t.Errorf("the backend of %s has responded with %v, want 4000", user, err)
				}
				conn.Close()
				if code := wiretest.Await(t, s.backends.ended, "the backend's end"); code != 4000 {
					t.Errorf("the backend of %s has seen the code %d, want 4000", user, code)
				}
				record := s.ended(t)
				if record["user"] != user || record["in_bytes"].(float64) == 0 || record["out_bytes"].(float64) == 0 {
					t.Errorf("logged %v", record)
				}
				s.echoByCoder(t, session, user, long)
			}
		})
	}
}

func (s *started) echoByCoder(t *testing.T, session, user, message string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	transport := &http.Transport{TLSClientConfig: s.tls, DialContext: s.dialNet}
	defer transport.CloseIdleConnections()
	conn, _, err := coder.Dial(ctx, "wss://gateway.test/chat", &coder.DialOptions{
		HTTPClient: &http.Client{Transport: transport}, HTTPHeader: http.Header{"Cookie": {"session=" + session}},
		CompressionMode: coder.CompressionContextTakeover,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.CloseNow()
	conn.SetReadLimit(1 << 20)
	for _, want := range []string{"welcome " + user, message} {
		_, data, err := conn.Read(ctx)
		if err != nil || string(data) != want {
			t.Fatalf("coder's client has received %d bytes, %v", len(data), err)
		}
		if want == message {
			break
		}
		if err := conn.Write(ctx, coder.MessageBinary, []byte(message)); err != nil {
			t.Fatal(err)
		}
	}
	if err := conn.Close(coder.StatusNormalClosure, ""); err != nil {
		t.Error(err)
	}
	if code := wiretest.Await(t, s.backends.ended, "the backend's end"); code != 1000 {
		t.Errorf("the backend of %s has seen the code %d, want 1000", user, code)
	}
	s.ended(t)
}

func TestRefused(t *testing.T) {
	s := start(t, "-per-user", "2", "-max", "3")
	for name, c := range map[string]struct {
		session string
		header  []string
		status  int
	}{
		"a page of another site":       {"s-ann", []string{"Origin", "https://evil.test"}, 403},
		"a page whose name ends alike": {"s-ann", []string{"Origin", "https://evilapp.test"}, 403},
		"no session":                   {"s-ann", []string{"Cookie", "a=b"}, 401},
		"an unknown session":           {"s-eve", nil, 401},
		"a server that is down":        {"s-carl", nil, 502},
	} {
		if conn, response := s.dial(t, c.session, c.header...); conn != nil || response.StatusCode != c.status {
			t.Errorf("%s: status %d, want %d", name, response.StatusCode, c.status)
		}
	}
	own, _ := s.dial(t, "s-ann", "Origin", "https://gateway.test")
	expect(t, own, "welcome ann")
	second, _ := s.dial(t, "s-ann")
	expect(t, second, "welcome ann")
	if conn, response := s.dial(t, "s-ann"); conn != nil || response.StatusCode != 503 || response.Header.Get("Retry-After") == "" {
		t.Errorf("the user's third WebSocket: %v", response)
	}
	bob, _ := s.dial(t, "s-bob")
	expect(t, bob, "welcome bob")
	if conn, response := s.dial(t, "s-bob"); conn != nil || response.StatusCode != 503 {
		t.Errorf("the fourth WebSocket of all: %v", response)
	}
	own.Close()
	s.ended(t) // its places are free then
	again, _ := s.dial(t, "s-ann")
	expect(t, again, "welcome ann")
}

// At a deploy both ends of each WebSocket receive 1001, and the program ends.
func TestDeploy(t *testing.T) {
	for name, args := range map[string][]string{"bytes": nil, "observed": {"-forbidden", "secret"}} {
		t.Run(name, func(t *testing.T) {
			s := start(t, args...)
			ann, _ := s.dial(t, "s-ann")
			bob, _ := s.dial(t, "s-bob")
			expect(t, ann, "welcome ann")
			expect(t, bob, "welcome bob")
			stopped := make(chan error, 1)
			go func() { stopped <- s.stop() }()
			for _, conn := range []*websocket.Conn{ann, bob} {
				if _, _, err := conn.ReadMessage(); closeCode(err) != 1001 {
					t.Errorf("the client's end: %v, want 1001", err)
				}
				if code := wiretest.Await(t, s.backends.ended, "the backend's end"); code != 1001 {
					t.Errorf("the backend's end: %d, want 1001", code)
				}
			}
			if err := wiretest.Await(t, stopped, "the program's end"); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestIdle(t *testing.T) {
	s := start(t, "-idle", "100ms")
	conn, _ := s.dial(t, "s-bob")
	expect(t, conn, "welcome bob")
	if _, _, err := conn.ReadMessage(); closeCode(err) != 1001 {
		t.Errorf("the client's end: %v, want 1001", err)
	}
	if code := wiretest.Await(t, s.backends.ended, "the backend's end"); code != 1001 {
		t.Errorf("the backend's end: %d, want 1001", code)
	}
}

func TestForbiddenMessage(t *testing.T) {
	s := start(t, "-forbidden", "secret")
	for _, session := range []string{"s-ann", "s-bob"} { // over both libraries, with permessage-deflate
		conn, _ := s.dial(t, session)
		if _, _, err := conn.ReadMessage(); err != nil {
			t.Fatal(err)
		}
		if err := conn.WriteMessage(websocket.TextMessage, []byte("a secret")); err != nil {
			t.Fatal(err)
		}
		if _, _, err := conn.ReadMessage(); closeCode(err) != 1008 {
			t.Errorf("the client's end: %v, want 1008", err)
		}
		if code := wiretest.Await(t, s.backends.ended, "the backend's end"); code != 1008 {
			t.Errorf("the backend's end: %d, want 1008", code)
		}
	}
}

// A client sends its first frame in one record of TLS with the handshake, and its server one in one segment with the 101.
func TestFirstFrames(t *testing.T) {
	const accept = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"
	frame := make(chan []byte, 1)
	eager := wiretest.Target(t, func(p *wiretest.Peer) {
		p.Header()
		p.Send(accept + "\x81\x05early")
		got := make([]byte, 2+4+5)
		if _, err := io.ReadFull(p.R, got); err != nil {
			return
		}
		frame <- got
		_, _ = io.Copy(io.Discard, p.R)
	})
	s := start(t)
	file := filepath.Join(t.TempDir(), "users.json")
	if err := os.WriteFile(file, fmt.Appendf(nil, `{"s-dan": {"user": "dan", "target": "http://%s"}}`, eager), 0o600); err != nil {
		t.Fatal(err)
	}
	cert, key, pool := peers.Certificate(t, "gateway.test")
	for name, more := range map[string][]string{"bytes": nil, "observed": {"-forbidden", "secret"}} {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"-listen", "127.0.0.1:0", "-cert", cert, "-key", key, "-users", file}, more...)
			addr, _ := peers.Program(t, func(ctx context.Context, ready func(net.Addr)) error { return run(ctx, args, s.logs, ready) })
			received := firstFrame(t, addr, pool, "\x81\x85\x00\x00\x00\x00hello")
			if !bytes.Equal(received, []byte("\x81\x05early")) {
				t.Errorf("the client has received %q", received)
			}
			if got := wiretest.Await(t, frame, "the client's frame"); !bytes.HasSuffix(unmasked(got), []byte("hello")) {
				t.Errorf("the target has received %q", got)
			}
		})
	}
}

// firstFrame sends the handshake with a frame behind it, and returns the first bytes of the tunnel.
func firstFrame(t *testing.T, addr string, pool *x509.CertPool, first string) []byte {
	t.Helper()
	conn, err := tls.Dial("tcp", addr, &tls.Config{RootCAs: pool, ServerName: "gateway.test"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET /chat HTTP/1.1\r\nHost: gateway.test\r\nCookie: session=s-dan\r\nConnection: Upgrade\r\n"+
		"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"+first); err != nil {
		t.Fatal(err)
	}
	reader := bufio.NewReader(conn)
	response, err := http.ReadResponse(reader, nil)
	if err != nil || response.StatusCode != 101 {
		t.Fatal(response, err)
	}
	received := make([]byte, 7)
	if _, err := io.ReadFull(reader, received); err != nil {
		t.Fatal(err)
	}
	return received
}

// unmasked returns a client's frame of less than 126 bytes without its mask.
func unmasked(frame []byte) []byte {
	mask, data := frame[2:6], bytes.Clone(frame[6:])
	for i := range data {
		data[i] ^= mask[i%4]
	}
	return data
}

func TestConfiguration(t *testing.T) {
	s := startBackends(t)
	users := (&started{backends: s}).users(t)
	cert, key, _ := peers.Certificate(t, "gateway.test")
	broken := filepath.Join(t.TempDir(), "broken.json")
	if err := os.WriteFile(broken, []byte(`{"s": {"user": "ann", "target": "ftp://x"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		want string
		args []string
	}{
		"no users":         {"-users", []string{"-cert", cert, "-key", key}},
		"a broken target":  {`user "ann"`, []string{"-cert", cert, "-key", key, "-users", broken}},
		"a broken origin":  {"https://*app.test", []string{"-cert", cert, "-key", key, "-users", users, "-origins", "https://*app.test"}},
		"a negative bound": {"wsupgrade", []string{"-cert", cert, "-key", key, "-users", users, "-max", "-1"}},
		"no certificate":   {"no such file", []string{"-cert", "missing.pem", "-key", key, "-users", users}},
		"no address":       {"-listen", []string{"-cert", cert, "-key", key, "-users", users, "-listen", "nowhere"}},
	} {
		err := run(t.Context(), append([]string{"-listen", "127.0.0.1:0"}, c.args...), io.Discard, func(net.Addr) {})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want an error with %q", name, err, c.want)
		}
	}
}
