package proxy_test

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// inBubble is called in a bubble of testing/synctest. It returns a client of a gateway whose only target runs script for each
// connection, and the group of that target. Pipes connect the three, so that time passes only while all of them wait.
func inBubble(t *testing.T, via path, o proxy.Options, u upstream.Options, script func(*wiretest.Peer), around ...culvert.Filter) (client *wiretest.Peer, group *upstream.Group) {
	t.Helper()
	t.Cleanup(func() { time.Sleep(time.Hour) }) // all of them end
	u.DialContext = pipeTo(func(c net.Conn) { script(wiretest.NewPeer(t, c)) })
	o.Upstream = groupOf(t, u, upstream.Target{Addr: "192.0.2.1:80", FailTimeout: time.Hour})
	near, far := net.Pipe()
	s := wiretest.Server(&http.Server{Handler: filters.NewChain(around...).Then(newProxy(t, via, o)), ErrorLog: wiretest.Quiet()})
	_ = s.Serve(wiretest.OneConn(far)) // the connection is served on
	t.Cleanup(func() {
		near.Close()
		_ = s.Close()
	})
	return wiretest.NewPeer(t, near), o.Upstream.(*upstream.Group)
}

// pipes is a listener that a client in the same bubble connects to by pipes.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), closed: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 80} }

func (p *pipes) dial(context.Context, string, string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case p.conns <- far:
		return near, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// testCertificate is httptest's.
var testCertificate = sync.OnceValue(func() []tls.Certificate {
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	return s.TLS.Certificates
})

// fronts are the protocols that a client in a bubble speaks.
var fronts = []string{"HTTP/1.1", "HTTP/2", "h2c"}

// frontInBubble is called in a bubble of testing/synctest, behind testCertificate outside of it. It serves h and returns a client.
func frontInBubble(t *testing.T, front string, h http.Handler) (client *http.Client, url string) {
	t.Helper()
	l := newPipes()
	s := wiretest.Server(&http.Server{Handler: h, ErrorLog: wiretest.Quiet(), Protocols: new(http.Protocols)})
	transport := &http.Transport{DialContext: l.dial, Protocols: s.Protocols}
	switch url = "http://gateway.test"; front {
	case "HTTP/1.1":
		s.Protocols.SetHTTP1(true)
	case "h2c":
		s.Protocols.SetUnencryptedHTTP2(true)
	case "HTTP/2":
		url = "https://gateway.test"
		s.Protocols.SetHTTP2(true)
		s.TLSConfig = &tls.Config{Certificates: testCertificate()}
		transport.TLSClientConfig = &tls.Config{InsecureSkipVerify: true}
	}
	go func() {
		if s.TLSConfig != nil {
			_ = s.ServeTLS(l, "", "")
			return
		}
		_ = s.Serve(l)
	}()
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		_ = s.Close()
	})
	return &http.Client{Transport: transport}, url
}
