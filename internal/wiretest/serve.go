package wiretest

import (
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// Target listens and runs script for each connection, which it closes after it.
// The test ends only when every script has.
func Target(t testing.TB, script func(p *Peer)) (addr string) {
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
				script(NewPeer(t, conn))
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		running.Wait()
	})
	return l.Addr().String()
}

// Replying is a target that reads a header section, writes reply, and then reads until the
// gateway is gone.
func Replying(t testing.TB, reply string) (addr string) {
	return Target(t, func(p *Peer) {
		p.Header()
		p.Send(reply)
		p.Ended()
	})
}

// Free returns an address for something that is to listen soon: another listener may take it before.
func Free(t testing.TB) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// Unused returns an address on which no server listens until the test ends. It is that of a
// connection's near end: one that was listened on and is free again may be the next listener's, the
// gateway's own for instance.
func Unused(t testing.TB) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	// Its port is bound before it is connected: the system takes no such port for a connection of its own choice. A
	// client that dialed the address from that very port would be connected with itself.
	bound := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}}
	near, err := bound.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { near.Close() })
	far, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { far.Close() })
	return near.LocalAddr().String()
}

// Serve serves h by the server of the run until the test ends. h gets OPTIONS * too.
func Serve(t testing.TB, h http.Handler) (addr string) {
	t.Helper()
	return ServeOver(t, h, func(l net.Listener) net.Listener { return l })
}

// ServeOver is Serve over what over makes of its listener.
func ServeOver(t testing.TB, h http.Handler, over func(net.Listener) net.Listener) (addr string) {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Listener = over(s.Listener)
	s.Config.ErrorLog = Quiet()
	s.Config.DisableGeneralOptionsHandler = true
	Start(s)
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// Quiet keeps the server's notes of aborted handlers out of the test's output.
func Quiet() *log.Logger { return log.New(io.Discard, "", 0) }

// Narrow makes l's connections hold little of what is written to them: a handler that writes to a client that
// reads nothing is held up after some 200 KB in place of megabytes.
func Narrow(l net.Listener) net.Listener { return narrow{l} }

type narrow struct{ net.Listener }

// Accept implements net.Listener.
func (l narrow) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetWriteBuffer(16 << 10)
	}
	return c, err
}
