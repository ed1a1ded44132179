package stream

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
)

// socket returns Packets whose new clients are sent to a channel, and a client.
func socket(t *testing.T, limit int) (p *Packets, accepted chan *PacketConn, dial func() net.Conn) {
	t.Helper()
	leaktest.Check(t)
	udp, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	p = NewPackets(udp)
	t.Cleanup(func() { p.Close() })
	accepted = make(chan *PacketConn, 100)
	p.Serve(func(c *PacketConn) {
		c.Limit(limit)
		accepted <- c
	})
	return p, accepted, func() net.Conn {
		c, err := net.Dial("udp", p.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
}

func await(t *testing.T, accepted chan *PacketConn) *PacketConn {
	t.Helper()
	return wiretest.Await(t, accepted, "session")
}

func send(t *testing.T, c net.Conn, list ...string) {
	t.Helper()
	for _, text := range list {
		if _, err := c.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
}

func expect(t *testing.T, c net.Conn, want string) {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
	b := make([]byte, maxDatagram)
	if n, err := c.Read(b); err != nil || string(b[:n]) != want {
		t.Fatalf("%q, %v, want %q", b[:n], err, want)
	}
}

// Datagrams belong to their client's session, and so do the responses.
func TestPackets(t *testing.T) {
	_, accepted, dial := socket(t, 0)
	a, b := dial(), dial()
	send(t, a, "a1", "a2", "")
	one := await(t, accepted)
	send(t, b, "b1")
	two := await(t, accepted)
	expect(t, one, "a1")
	expect(t, two, "b1")
	expect(t, one, "a2")
	expect(t, one, "")
	send(t, one, "to a")
	send(t, two, "to b")
	expect(t, b, "to b")
	expect(t, a, "to a")
	if one.RemoteAddr().String() != a.LocalAddr().String() || one.LocalAddr().String() != a.RemoteAddr().String() {
		t.Errorf("%v and %v", one.RemoteAddr(), one.LocalAddr())
	}
	one.Close()
	if _, err := one.Read(nil); !errors.Is(err, net.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
	send(t, a, "anew")
	expect(t, await(t, accepted), "anew")
}

// Limit ends a session by its datagrams, whenever they are read.
func TestPacketsLimit(t *testing.T) {
	_, accepted, dial := socket(t, 2)
	a := dial()
	send(t, a, "1", "2", "3", "4", "5")
	for _, want := range [][]string{{"1", "2"}, {"3", "4"}, {"5"}} {
		c := await(t, accepted)
		for _, text := range want {
			expect(t, c, text)
		}
	}
}

// A session that reads nothing costs no more than its share.
func TestPacketsQueue(t *testing.T) {
	p, accepted, _ := socket(t, 0)
	silent, other := ends{client: netip.MustParseAddrPort("127.0.0.1:1")}, ends{client: netip.MustParseAddrPort("127.0.0.1:2")}
	for range maxQueue + 50 {
		p.deliver(silent, []byte("x"))
	}
	c := await(t, accepted)
	p.deliver(other, []byte("y"))
	expect(t, await(t, accepted), "y")
	if n := len(c.in); n != maxQueue {
		t.Errorf("%d datagrams wait", n)
	}
	c.Close()
	if n := p.queued.Load(); n != 0 {
		t.Errorf("%d bytes are queued behind the end", n)
	}
}

// There are no more sessions than there may be, and one that ends makes room.
func TestPacketsClients(t *testing.T) {
	p, accepted, _ := socket(t, 0)
	accepted = make(chan *PacketConn, maxClients+1)
	p.Serve(func(c *PacketConn) { accepted <- c })
	at := func(i int) ends {
		return ends{client: netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 1, byte(i >> 8), byte(i)}), 1)}
	}
	for i := range maxClients + 1 {
		p.deliver(at(i), nil)
	}
	if n := len(accepted); n != maxClients {
		t.Errorf("%d sessions", n)
	}
	p.Serve(func(c *PacketConn) { accepted <- c }) // those of a former configuration count, too
	p.deliver(at(0), nil)
	if n := len(accepted); n != maxClients {
		t.Errorf("%d sessions behind a reload", n)
	}
	former := <-accepted
	former.Close()
	p.deliver(at(maxClients), nil)
	if n := len(accepted); n != maxClients {
		t.Errorf("%d sessions behind the end of one", n)
	}
	p.Close()
	for len(accepted) > 0 {
		if _, err := (<-accepted).Read(make([]byte, 1)); err != nil && !errors.Is(err, net.ErrClosed) {
			t.Fatal(err)
		}
	}
}

func TestPacketConnDeadline(t *testing.T) {
	_, accepted, dial := socket(t, 0)
	a := dial()
	send(t, a, "1")
	c := await(t, accepted)
	expect(t, c, "1")
	ended := make(chan error, 1)
	go func() {
		_, err := c.Read(make([]byte, 1))
		ended <- err
	}()
	_ = c.SetDeadline(time.Unix(1, 0)) // interrupts the Read that waits
	if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(err)
	}
	_ = c.SetDeadline(time.Now().Add(time.Millisecond))
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(err)
	}
	_ = c.SetDeadline(time.Time{})
	send(t, a, strings.Repeat("2", 1<<10))
	expect(t, c, strings.Repeat("2", 1<<10))
}
