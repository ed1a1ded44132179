// Package wstest lets embedders test their gateways for WebSockets in memory: a server
// around the gateway, a client that opens WebSockets through it, and targets that are
// scripted, without a socket or a port, and inside a testing/synctest bubble if wanted.
//
//	target := wstest.NewTarget(func(conn *websocket.Conn) { ... })
//	upgrades, err := wsupgrade.New(wsupgrade.Options{Dial: target.Dial})
//	gateway := wstest.Serve(upgrades.Handler(target.URL()))
//	defer gateway.Close()
//	conn, resp, err := gateway.Dial("/chat", nil)
package wstest

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"sync"

	"github.com/gorilla/websocket"
)

// Server serves a handler to clients in memory.
type Server struct {
	server *http.Server
	conns  *listener
	ended  chan struct{}
}

// Serve serves h until Close.
func Serve(h http.Handler) *Server {
	s := &Server{
		server: &http.Server{Handler: h, ErrorLog: log.New(io.Discard, "", 0)},
		conns:  &listener{conns: make(chan net.Conn), closed: make(chan struct{})},
		ended:  make(chan struct{}),
	}
	go func() {
		defer close(s.ended)
		_ = s.server.Serve(s.conns) // ends with Close
	}()
	return s
}

// Conn returns a connection to the server, to be used without an HTTP client. The error is
// net.ErrClosed after Close.
func (s *Server) Conn() (net.Conn, error) {
	client, server := Pipe()
	select {
	case s.conns.conns <- server:
		return client, nil
	case <-s.conns.closed:
		return nil, net.ErrClosed
	}
}

// Dial opens a WebSocket at the path, on the host gateway.test, with the fields of header, Origin
// and Sec-WebSocket-Protocol for instance. If it is refused, the response is returned beside the
// error.
func (s *Server) Dial(path string, header http.Header) (*websocket.Conn, *http.Response, error) {
	conn, err := s.Conn()
	if err != nil {
		return nil, nil, err
	}
	dialer := websocket.Dialer{NetDial: func(string, string) (net.Conn, error) { return conn, nil }}
	return dialer.Dial("ws://gateway.test"+path, header)
}

// Close closes the server and its connections. Those that were taken over are left to their
// handlers.
func (s *Server) Close() error {
	err := s.server.Close()
	<-s.ended
	return err
}

// listener accepts the ends of pipes.
type listener struct {
	conns  chan net.Conn
	once   sync.Once
	closed chan struct{}
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *listener) Addr() net.Addr { return addr{} }

// Target is a scripted WebSocket server.
type Target struct {
	server *Server
}

// NewTarget returns a target that runs script for each WebSocket, which it closes afterwards. It
// accepts no subprotocol and no extension; for others, and for targets that refuse or break the
// handshake, see NewRawTarget.
func NewTarget(script func(*websocket.Conn)) *Target {
	upgrader := websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}
	return &Target{Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			return // Upgrade has written the response
		}
		defer conn.Close()
		script(conn)
	}))}
}

// NewRawTarget returns a target that serves its requests with h.
func NewRawTarget(h http.Handler) *Target { return &Target{Serve(h)} }

// Dial is for wsupgrade.Options.Dial. It connects to the target, for every network and address.
func (t *Target) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	conn, err := t.server.Conn()
	if err != nil {
		return nil, errors.Join(errors.New("wstest: the target is closed"), err)
	}
	return conn, nil
}

// URL returns a URL for wsupgrade.Forwarder.Handler.
func (t *Target) URL() *url.URL { return &url.URL{Scheme: "http", Host: "target.test"} }

// Close closes the target. Open WebSockets are left to their scripts.
func (t *Target) Close() error { return t.server.Close() }
