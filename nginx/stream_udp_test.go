package nginx_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"testing"
	"time"
)

// dgram is one end of datagrams.
type dgram struct {
	net.Conn
	t *testing.T
}

func dialUDP(t *testing.T, addr string) dgram {
	t.Helper()
	c, err := net.Dial("udp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	return dgram{c, t}
}

func (d dgram) send(text string) {
	d.t.Helper()
	if _, err := d.Write([]byte(text)); err != nil {
		d.t.Error(err)
	}
}

func (d dgram) receive() string {
	d.t.Helper()
	b := make([]byte, 64<<10)
	n, err := d.Read(b)
	if err != nil {
		d.t.Error(err)
	}
	return string(b[:n])
}

// naming responds to each datagram with the sender's port, a number of times that is the datagram's first digit.
func naming(t *testing.T) string {
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		b := make([]byte, 64<<10)
		for {
			n, from, err := c.ReadFrom(b)
			if errors.Is(err, net.ErrClosed) {
				return
			}
			for i := 0; n > 0 && i < int(b[0]-'0'); i++ {
				_, _ = c.WriteTo(fmt.Appendf(nil, "%d %d", from.(*net.UDPAddr).Port, i), from)
			}
		}
	}()
	t.Cleanup(func() {
		c.Close()
		<-done
	})
	return c.LocalAddr().String()
}

// Each client has a session, in which its datagrams are sent from one port.
func TestStreamUDP(t *testing.T) {
	s, addr := stream(t, `log_format f "$protocol $status $bytes_received $upstream_bytes_sent"; access_log access.log f;
		server { listen PORT udp; proxy_pass `+naming(t)+`; }`)
	a, b := dialUDP(t, addr), dialUDP(t, addr)
	a.send("1")
	first := a.receive()
	b.send("2")
	if other := b.receive(); other == first {
		t.Errorf("both are %q", other)
	}
	if second := b.receive(); second[len(second)-1] != '1' {
		t.Errorf("the second response is %q", second)
	}
	a.send("1")
	if again := a.receive(); again != first {
		t.Errorf("first %q, then %q", first, again)
	}
	if got := s.logged("access.log"); got != "UDP 200 2 2\nUDP 200 1 1\n" && got != "UDP 200 1 1\nUDP 200 2 2\n" {
		t.Errorf("logged %q", got)
	}
}

// proxy_requests and proxy_responses say when a session has ended.
func TestStreamUDPSessions(t *testing.T) {
	s, addr := stream(t, `log_format f $status; access_log access.log f;
		server { listen PORT udp; proxy_requests 2; proxy_responses 1; proxy_pass `+naming(t)+`; }`)
	c := dialUDP(t, addr)
	var got []string
	for range 5 {
		c.send("1")
		got = append(got, c.receive())
	}
	if got[0] != got[1] || got[2] != got[3] || got[1] == got[2] || got[3] == got[4] {
		t.Errorf("sessions of %q", got)
	}
	if got := s.logged("access.log"); got != "200\n200\n200\n" {
		t.Errorf("logged %q", got)
	}
}

// A server that does not listen has failed, and the next datagram is another one's.
func TestStreamUDPFailure(t *testing.T) {
	closed, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, addr := stream(t, `upstream u { server `+closed.LocalAddr().String()+`; server `+naming(t)+`; }
		server { listen PORT udp; proxy_responses 1; proxy_timeout 10s; proxy_pass u; }`)
	closed.Close()
	for tries := 0; ; tries++ {
		c := dialUDP(t, addr)
		_ = c.SetReadDeadline(time.Now().Add(500 * time.Millisecond))
		c.send("1")
		if _, err := c.Read(make([]byte, 10)); err == nil {
			break
		} else if tries > 10 || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal(err)
		}
	}
}

// A datagram behind a reload is one of a new session, which the new configuration serves.
func TestStreamUDPReload(t *testing.T) {
	s, addr := stream(t, "server { listen PORT udp; proxy_pass "+naming(t)+"; }")
	c := dialUDP(t, addr)
	c.send("1")
	_ = c.receive()
	s.writeStream(addr, `server { listen PORT udp; return "new $remote_port"; }`)
	if err := s.Reload(); err != nil {
		t.Fatal(err)
	}
	c.send("1")
	if got, want := c.receive(), fmt.Sprint("new ", c.LocalAddr().(*net.UDPAddr).Port); got != want {
		t.Errorf("received %q, want %q", got, want)
	}
	if err := s.Shutdown(t.Context()); err != nil { // which does not wait until the former session times out
		t.Error(err)
	}
}
