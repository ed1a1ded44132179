package wiretest

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
)

// serverVariable chooses the server that the tests of a run use: "culvert" is package server's, else it is net/http's.
const serverVariable = "CULVERT_TEST_SERVER"

// OwnServer reports whether tests run behind package server's server, in place of net/http's.
func OwnServer() bool { return os.Getenv(serverVariable) == "culvert" }

// MakeOwn makes package server's server of the fields of an http.Server. A package whose tests run behind both servers
// imports ownserver, which sets it: package server's own tests import this package, so this one can't import that.
var MakeOwn func(*http.Server) Serving

// Serving has the methods of http.Server that both servers have.
type Serving interface {
	Serve(net.Listener) error
	ServeTLS(l net.Listener, certFile, keyFile string) error
	Shutdown(context.Context) error
	Close() error
}

// HTTPServer is the server of the run. Its fields are read when one of its methods is called for the first time.
type HTTPServer struct {
	*http.Server
	once sync.Once
	used Serving
}

// Server returns the server of the run with the fields of o.
func Server(o *http.Server) *HTTPServer { return &HTTPServer{Server: o} }

func (s *HTTPServer) chosen() Serving {
	s.once.Do(func() {
		switch {
		case !OwnServer():
			s.used = s.Server
		case MakeOwn == nil:
			panic("the tests of this package do not import internal/wiretest/ownserver")
		default:
			s.used = MakeOwn(s.Server)
		}
	})
	return s.used
}

// Serve is http.Server.Serve.
func (s *HTTPServer) Serve(l net.Listener) error { return s.chosen().Serve(l) }

// ServeTLS is http.Server.ServeTLS.
func (s *HTTPServer) ServeTLS(l net.Listener, certFile, keyFile string) error {
	return s.chosen().ServeTLS(l, certFile, keyFile)
}

// Shutdown is http.Server.Shutdown.
func (s *HTTPServer) Shutdown(ctx context.Context) error { return s.chosen().Shutdown(ctx) }

// Close is http.Server.Close.
func (s *HTTPServer) Close() error { return s.chosen().Close() }

// NewServer is httptest.NewServer with the server of the run.
func NewServer(h http.Handler) *httptest.Server {
	s := httptest.NewUnstartedServer(h)
	Start(s)
	return s
}

// NewTLSServer is httptest.NewTLSServer with the server of the run.
func NewTLSServer(h http.Handler) *httptest.Server {
	s := httptest.NewUnstartedServer(h)
	StartTLS(s)
	return s
}

// Start starts s with the server of the run.
func Start(s *httptest.Server) { start(s, s.Start) }

// StartTLS is Start with TLS.
func StartTLS(s *httptest.Server) { start(s, s.StartTLS) }

// start starts s. In a run with package server's, s accepts no connection: that serves its listener.
func start(s *httptest.Server, start func()) {
	if !OwnServer() {
		start()
		return
	}
	c := s.Config
	p := &passedOn{Listener: s.Listener, closed: make(chan struct{}), idle: map[net.Conn]bool{}}
	p.server = Server(&http.Server{Handler: c.Handler, ErrorLog: c.ErrorLog, Protocols: c.Protocols, HTTP2: c.HTTP2, ConnState: p.noting(c.ConnState),
		ReadTimeout: c.ReadTimeout, ReadHeaderTimeout: c.ReadHeaderTimeout, WriteTimeout: c.WriteTimeout, IdleTimeout: c.IdleTimeout,
		MaxHeaderBytes: c.MaxHeaderBytes, BaseContext: c.BaseContext, ConnContext: c.ConnContext,
		DisableGeneralOptionsHandler: c.DisableGeneralOptionsHandler})
	l := s.Listener
	s.Listener = p
	if start(); s.TLS != nil {
		l = tls.NewListener(l, s.TLS)
	}
	go func() { _ = p.server.Serve(l) }()
}

// passedOn is the listener of an httptest.Server whose connections another server accepts.
type passedOn struct {
	net.Listener
	server *HTTPServer
	once   sync.Once
	closed chan struct{}
	mu     sync.Mutex
	idle   map[net.Conn]bool // connections without a request
}

// noting notes which connections are idle, or new, and calls next, which may be nil.
func (p *passedOn) noting(next func(net.Conn, http.ConnState)) func(net.Conn, http.ConnState) {
	return func(c net.Conn, state http.ConnState) {
		p.mu.Lock()
		if state == http.StateNew || state == http.StateIdle {
			p.idle[c] = true
		} else {
			delete(p.idle, c)
		}
		p.mu.Unlock()
		if next != nil {
			next(c, state)
		}
	}
}

func (p *passedOn) Accept() (net.Conn, error) {
	<-p.closed
	return nil, net.ErrClosed
}

// Close ends the other server as httptest.Server ends its own: it closes idle connections, and waits for requests.
func (p *passedOn) Close() error {
	p.once.Do(p.end)
	return nil
}

func (p *passedOn) end() {
	close(p.closed)
	_ = p.Listener.Close()
	p.mu.Lock()
	for c := range p.idle {
		_ = c.Close()
	}
	p.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if p.server.Shutdown(ctx) != nil {
		_ = p.server.Close()
	}
}
