package wsupgrade_test

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/wsupgrade"
)

// deadlines is a connection that records its deadlines.
type deadlines struct {
	net.Conn
	mu          sync.Mutex
	read, write time.Time
}

func (d *deadlines) SetDeadline(t time.Time) error {
	_ = d.SetReadDeadline(t)
	return d.SetWriteDeadline(t)
}

func (d *deadlines) SetReadDeadline(t time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.read = t
	return d.Conn.SetReadDeadline(t)
}

func (d *deadlines) SetWriteDeadline(t time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.write = t
	return d.Conn.SetWriteDeadline(t)
}

func (d *deadlines) get() (read, write time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.read, d.write
}

// remembering is a listener that also sends each accepted connection to a channel.
type remembering struct {
	net.Listener
	accepted chan *deadlines
}

func (l remembering) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	d := &deadlines{Conn: conn}
	l.accepted <- d
	return d, nil
}

// The server's timeouts are for requests. Its ReadTimeout must not be taken for a disconnect of the
// client during a handshake, and none of them may end a tunnel.
func TestServerTimeoutsAreNotTheTunnels(t *testing.T) {
	leaktest.Check(t)
	target := wiretest.Target(t, func(p *wiretest.Peer) {
		p.Header()
		p.Send(switching)
		p.Ended()
	})
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := remembering{tcp, make(chan *deadlines, 1)}
	accepted := make(chan *deadlines, 1)
	f := forwarder(t, wsupgrade.Options{Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn := <-l.accepted
		read, write := conn.get()
		if set := !write.IsZero(); !read.IsZero() || set == wiretest.OwnServer() { // package server sets it when it writes
			t.Errorf("while dialling the deadlines are %v and %v, want none for reading and the server's for writing", read, write)
		}
		accepted <- conn
		return new(net.Dialer).DialContext(ctx, network, addr)
	}})
	s := wiretest.Server(&http.Server{
		Handler:      f.Handler(&url.URL{Scheme: "http", Host: target}),
		ReadTimeout:  time.Hour,
		WriteTimeout: time.Hour,
		ErrorLog:     wiretest.Quiet(),
	})
	var serving sync.WaitGroup
	serving.Go(func() { _ = s.Serve(l) })
	t.Cleanup(func() { s.Close(); serving.Wait() })
	p := wiretest.Dial(t, tcp.Addr().String())
	p.Send(handshake)
	p.Header()
	conn := wiretest.Await(t, accepted, "connection")
	read, write := conn.get()
	for end := time.Now().Add(20 * time.Second); !(read.IsZero() && write.IsZero()) && time.Now().Before(end); read, write = conn.get() {
		time.Sleep(time.Millisecond) // the client has the 101 a moment before the write of it has returned
	}
	if !read.IsZero() || !write.IsZero() {
		t.Errorf("in the tunnel the deadlines are %v and %v", read, write)
	}
}
