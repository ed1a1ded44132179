package http3

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/quic-go/quic-go"
	h3 "github.com/quic-go/quic-go/http3"
)

// linger is how long a connection is kept behind GOAWAY and its last request, for what of the response was not received yet.
// A client that follows GOAWAY ends the connection by itself.
var linger = 3 * time.Second

// conn is a client's connection. It is a net.Conn for those hooks which need one to name it, and has no bytes.
type conn struct {
	net.Conn // nil
	quic     *quic.Conn
	server   *Server
	http     *h3.Server // of this connection alone

	mu      sync.Mutex
	active  int  // handlers that run
	retired bool // GOAWAY was sent
	ended   bool
	idle    *time.Timer // ends the connection if no handler runs
}

// connOf returns the conn of a connection whose handshake is complete.
func connOf(s *Server, q *quic.Conn) *conn {
	c := q.Context().Value(connKey{}).(*conn)
	c.quic, c.server = q, s
	c.http = &h3.Server{Handler: http.HandlerFunc(c.handle), MaxHeaderBytes: s.settings.MaxHeaderBytes, Logger: s.settings.Logger}
	return c
}

// LocalAddr implements net.Conn, when the handshake is complete.
func (c *conn) LocalAddr() net.Addr { return c.quic.LocalAddr() }

// RemoteAddr implements net.Conn, when the handshake is complete.
func (c *conn) RemoteAddr() net.Addr { return c.quic.RemoteAddr() }

// serve serves the connection until it has ended.
func (c *conn) serve() {
	defer c.server.remove(c)
	c.state(http.StateNew)
	defer c.state(http.StateClosed)
	c.mu.Lock()
	c.idle = time.AfterFunc(c.patience(), c.expire)
	c.mu.Unlock()
	_ = c.http.ServeQUICConn(c.quic)
	c.mu.Lock()
	c.ended = true
	c.idle.Stop()
	c.mu.Unlock()
	c.close()
}

func (c *conn) state(state http.ConnState) {
	if hook := c.server.settings.ConnState; hook != nil {
		hook(c, state)
	}
}

// close ends the connection at once.
func (c *conn) close() { _ = c.quic.CloseWithError(noError, "") }

// patience returns how long the connection is kept without a request. The caller holds c.mu.
func (c *conn) patience() time.Duration {
	if c.retired {
		return linger
	}
	return c.server.settings.idleTimeout()
}

// expire is called when the connection has been idle. It gets GOAWAY first, so that a request that crosses its end is known
// not to have been served.
func (c *conn) expire() {
	c.mu.Lock()
	active, retired := c.active, c.retired
	c.mu.Unlock()
	switch {
	case active > 0:
	case retired:
		c.close()
	default:
		c.retire()
	}
}

// retire sends GOAWAY. The connection ends behind its requests.
func (c *conn) retire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.retired || c.ended {
		return
	}
	c.retired = true
	if c.active == 0 && c.idle != nil {
		c.idle.Reset(linger)
	}
	c.server.open.Go(func() { _ = c.http.Shutdown(c.quic.Context()) })
}

// begin is called when a handler starts.
func (c *conn) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.idle.Stop()
	if c.active++; c.active == 1 {
		c.state(http.StateActive)
	}
}

// end is called when one has returned.
func (c *conn) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.active--; c.active == 0 {
		c.state(http.StateIdle)
		c.idle.Reset(c.patience())
	}
}

// handle serves a request.
func (c *conn) handle(w http.ResponseWriter, r *http.Request) {
	c.begin()
	defer c.end()
	r.Proto = "HTTP/3.0" // quic-go has the protocol of an extended CONNECT here
	settleLength(r)
	keepTrailers(r)
	if base := c.server.settings.BaseContext; base != nil {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(base, cancel)()
		r = r.WithContext(ctx)
	}
	to := &writer{ResponseWriter: w, conn: c, head: r.Method == http.MethodHead}
	c.server.settings.Handler.ServeHTTP(to, r)
	if !to.final {
		to.WriteHeader(http.StatusOK)
	}
}
