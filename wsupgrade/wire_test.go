package wsupgrade_test

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/culvert-go/culvert/wsupgrade"
)

// The key and its answer are those of RFC 6455 section 1.3.
const (
	key    = "dGhlIHNhbXBsZSBub25jZQ=="
	accept = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
)

const handshake = "GET /chat HTTP/1.1\r\n" +
	"Host: culvert.test\r\n" +
	"Connection: Upgrade\r\n" +
	"Upgrade: websocket\r\n" +
	"Sec-WebSocket-Key: " + key + "\r\n" +
	"Sec-WebSocket-Version: 13\r\n" +
	"\r\n"

const switching = "HTTP/1.1 101 Switching Protocols\r\n" +
	"Connection: Upgrade\r\n" +
	"Upgrade: websocket\r\n" +
	"Sec-WebSocket-Accept: " + accept + "\r\n" +
	"\r\n"

// with returns head with lines put in front of its blank line.
func with(head string, lines ...string) string {
	return strings.TrimSuffix(head, "\r\n") + strings.Join(lines, "\r\n") + "\r\n\r\n"
}

// without returns head without the lines of the named field.
func without(head, field string) string {
	var kept []string
	for _, line := range strings.SplitAfter(head, "\r\n") {
		if !strings.HasPrefix(strings.ToLower(line), strings.ToLower(field)+":") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}

// patience bounds every wait of a test; none is expected to take it.
const patience = 20 * time.Second

// peer is one end of a connection, spoken to in bytes.
type peer struct {
	t testing.TB
	net.Conn
	r *bufio.Reader
}

func newPeer(t testing.TB, conn net.Conn) *peer {
	_ = conn.SetDeadline(time.Now().Add(patience))
	return &peer{t: t, Conn: conn, r: bufio.NewReader(conn)}
}

func dial(t testing.TB, addr string) *peer {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return newPeer(t, conn)
}

func (p *peer) send(s string) {
	p.t.Helper()
	if _, err := io.WriteString(p, s); err != nil {
		p.t.Errorf("send: %v", err)
	}
}

// head reads up to the blank line, it included.
func (p *peer) head() string {
	p.t.Helper()
	var b strings.Builder
	for {
		line, err := p.r.ReadString('\n')
		b.WriteString(line)
		if err != nil {
			p.t.Errorf("head: %v after %q", err, b.String())
			return b.String()
		}
		if line == "\r\n" {
			return b.String()
		}
	}
}

// receive reads exactly as many bytes as want has.
func (p *peer) receive(want string) {
	p.t.Helper()
	got := make([]byte, len(want))
	if n, err := io.ReadFull(p.r, got); err != nil || string(got) != want {
		p.t.Errorf("received %q (%v), want %q", got[:n], err, want)
	}
}

// rest reads until the other end closes.
func (p *peer) rest() string {
	p.t.Helper()
	rest, err := io.ReadAll(p.r)
	if err != nil {
		p.t.Errorf("rest: %v after %d bytes", err, len(rest))
	}
	return string(rest)
}

// ended waits until nothing comes any more, by an end or by a reset.
func (p *peer) ended() string {
	p.t.Helper()
	rest, err := io.ReadAll(p.r)
	if nerr, ok := err.(net.Error); ok && nerr.Timeout() {
		p.t.Errorf("still open after %q", rest)
	}
	return string(rest)
}

// end closes the sending half.
func (p *peer) end() {
	p.t.Helper()
	if err := p.Conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		p.t.Errorf("half-close: %v", err)
	}
}

// answer reads a response with its body.
func (p *peer) answer(method string) (*http.Response, string) {
	p.t.Helper()
	resp, err := http.ReadResponse(p.r, &http.Request{Method: method})
	if err != nil {
		p.t.Fatalf("answer: %v", err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		p.t.Fatalf("body: %v after %q", err, body)
	}
	return resp, string(body)
}

func (p *peer) status(want int) {
	p.t.Helper()
	if resp, body := p.answer("GET"); resp.StatusCode != want {
		p.t.Errorf("answer %s %q, want %d", resp.Status, body, want)
	}
}

// backend listens and runs script for each connection. The test ends only when
// every script has.
func backend(t testing.TB, script func(p *peer)) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				defer conn.Close()
				script(newPeer(t, conn))
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		running.Wait()
	})
	return l.Addr().String()
}

// replying is a backend that reads a head, writes reply, and then reads until the
// gateway is gone.
func replying(t testing.TB, reply string) (addr string) {
	return backend(t, func(p *peer) {
		p.head()
		p.send(reply)
		p.ended()
	})
}

func forwarder(t testing.TB, o wsupgrade.Options) *wsupgrade.Forwarder {
	t.Helper()
	f, err := wsupgrade.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// gateway serves a ServeMux with upgrades to target at /, and /secret beside.
func gateway(t testing.TB, o wsupgrade.Options, target string) (addr string) {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle("/", forwarder(t, o).Handler(&url.URL{Scheme: "http", Host: target}))
	mux.HandleFunc("/secret", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "kept by the gateway")
	})
	return serve(t, mux)
}

func serve(t testing.TB, h http.Handler) (addr string) {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = quiet
	s.Start()
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// outcome is what one call of Forward did.
type outcome struct {
	status int
	err    *wsupgrade.Error
}

// watched serves Forward and reports each call's outcome.
func watched(t testing.TB, o wsupgrade.Options, target string) (addr string, outcomes <-chan outcome) {
	t.Helper()
	f := forwarder(t, o)
	c := make(chan outcome, 8)
	return serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status, err := f.Forward(w, r, outboundTo(r, target))
		c <- outcome{status, asError(err)}
		switch e := asError(err); {
		case e == nil:
		case e.HeadSent:
			panic(http.ErrAbortHandler)
		default:
			wsupgrade.Refuse(w, e)
		}
	})), c
}

func outboundTo(r *http.Request, target string) *http.Request {
	out := r.Clone(r.Context())
	out.URL.Scheme, out.URL.Host = "http", target
	return out
}

func await[T any](t testing.TB, c <-chan T, what string) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(patience):
		t.Fatalf("no %s", what)
	}
	return v
}

// pattern is n bytes of which no two neighbouring blocks are alike.
func pattern(n int) []byte {
	b := make([]byte, n)
	state := uint32(n)
	for i := range b {
		state = state*1664525 + 1013904223
		b[i] = byte(state >> 24)
	}
	return b
}

func sameBytes(t testing.TB, what string, got, want []byte) {
	t.Helper()
	if !bytes.Equal(got, want) {
		i := 0
		for i < min(len(got), len(want)) && got[i] == want[i] {
			i++
		}
		t.Errorf("%s: %d bytes, want %d, alike up to %d", what, len(got), len(want), i)
	}
}
