// Package wiretest lets a test speak HTTP in bytes, as client and as target:
// http.Client and httptest hide just the faults that a gateway must not have.
package wiretest

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// patience bounds every wait of a test; none is expected to take it.
const patience = 20 * time.Second

// Peer is one end of a connection.
type Peer struct {
	net.Conn
	// R reads from the connection.
	R *bufio.Reader
	t testing.TB
}

// NewPeer returns the peer that speaks over conn.
func NewPeer(t testing.TB, conn net.Conn) *Peer {
	_ = conn.SetDeadline(time.Now().Add(patience))
	return &Peer{Conn: conn, R: bufio.NewReader(conn), t: t}
}

// Dial connects to addr until the test ends.
func Dial(t testing.TB, addr string) *Peer {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return NewPeer(t, conn)
}

// Send writes s.
func (p *Peer) Send(s string) {
	p.t.Helper()
	if _, err := io.WriteString(p, s); err != nil {
		p.t.Errorf("send: %v", err)
	}
}

// Header reads up to the blank line, it included.
func (p *Peer) Header() string {
	p.t.Helper()
	var b strings.Builder
	for {
		line, err := p.R.ReadString('\n')
		b.WriteString(line)
		if err != nil {
			p.t.Errorf("header: %v after %q", err, b.String())
			return b.String()
		}
		if line == "\r\n" {
			return b.String()
		}
	}
}

// Receive reads exactly as many bytes as want has.
func (p *Peer) Receive(want string) {
	p.t.Helper()
	got := make([]byte, len(want))
	n, err := io.ReadFull(p.R, got)
	switch {
	case err == nil && string(got) == want:
	case len(want) > 4<<10:
		SameBytes(p.t, fmt.Sprintf("received (%v)", err), got[:n], []byte(want))
	default:
		p.t.Errorf("received %q (%v), want %q", got[:n], err, want)
	}
}

// Rest reads until the other end closes.
func (p *Peer) Rest() string {
	p.t.Helper()
	rest, err := io.ReadAll(p.R)
	if err != nil {
		p.t.Errorf("rest: %v after %d bytes", err, len(rest))
	}
	return string(rest)
}

// Ended waits until nothing comes any more, by an end or by a reset, and returns
// what came.
func (p *Peer) Ended() string {
	p.t.Helper()
	rest, err := io.ReadAll(p.R)
	if nerr, ok := err.(net.Error); ok && nerr.Timeout() {
		p.t.Errorf("still open after %q", rest)
	}
	return string(rest)
}

// End closes the sending half.
func (p *Peer) End() {
	p.t.Helper()
	if err := p.Conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		p.t.Errorf("half-close: %v", err)
	}
}

// Reset closes the connection in a way that the other end sees as a reset.
func (p *Peer) Reset() {
	p.t.Helper()
	if err := p.Conn.(*net.TCPConn).SetLinger(0); err != nil {
		p.t.Errorf("reset: %v", err)
	}
	p.Close()
}

// Response reads a response to a request with the method, with its body.
func (p *Peer) Response(method string) (*http.Response, string) {
	p.t.Helper()
	resp, err := http.ReadResponse(p.R, &http.Request{Method: method})
	if err != nil {
		p.t.Fatalf("response: %v", err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		p.t.Fatalf("body: %v after %q", err, body)
	}
	return resp, string(body)
}

// Status reads a response and checks its status.
func (p *Peer) Status(want int) {
	p.t.Helper()
	if resp, body := p.Response("GET"); resp.StatusCode != want {
		p.t.Errorf("response %s %q, want %d", resp.Status, body, want)
	}
}
