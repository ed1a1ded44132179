package nginx

import (
	"context"
	"net"
	"net/http"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/culvert-go/culvert/nginx/internal/engine"
	"github.com/culvert-go/culvert/nginx/internal/http3"
)

// serveHTTP3 serves the sockets of QUIC.
func (g *generation) serveHTTP3(sockets map[socketKey]*socket) {
	for _, l := range g.engine.QUIC() {
		socket := sockets[keyOfQUIC(l)].http3
		if !socket.HasHostKey(l.HostKey) {
			g.engine.Warn("the quic_host_key of " + l.Address + " has changed, and has no effect until the address is bound anew")
		}
		s, err := socket.Serve(http3.Settings{
			TLS: l.TLS, Handler: counted{g, l.Handler}, HandshakeTimeout: l.HandshakeTimeout, IdleTimeout: l.IdleTimeout,
			MaxHeaderBytes: l.MaxHeaderBytes, MaxStreams: l.MaxStreams, StreamBuffer: l.StreamBuffer, Retry: l.Retry,
			BaseContext: g.ctx, ConnContext: l.ConnContext, Logger: g.engine.Logger(),
			ConnState: func(conn net.Conn, state http.ConnState) {
				g.track(state)
				l.ConnState(conn, state)
			},
		})
		if err != nil { // the socket can't be prepared for QUIC
			g.engine.Logger().Error("QUIC at " + l.Address + ": " + err.Error())
			continue
		}
		g.http3 = append(g.http3, s)
	}
}

// hostKey returns the key of an address's tokens.
func hostKey(e *engine.Engine, key socketKey) []byte {
	for _, l := range e.QUIC() {
		if keyOfQUIC(l) == key {
			return l.HostKey
		}
	}
	return nil
}

// handOverGrace is how long requests over HTTP/3 may go on when their socket is handed over.
const handOverGrace = 500 * time.Millisecond

// suspend leaves the datagrams of QUIC to another process. The caller holds s.mu.
func (s *Server) suspend() {
	ctx, cancel := context.WithTimeout(s.running, handOverGrace)
	defer cancel()
	var all sync.WaitGroup
	for _, socket := range s.sockets {
		if socket.http3 != nil {
			all.Go(func() { socket.http3.Suspend(ctx) })
		}
	}
	all.Wait()
}

// resume reads them again. The caller holds s.mu.
func (s *Server) resume() {
	for _, socket := range s.sockets {
		if socket.http3 == nil {
			continue
		}
		if err := socket.http3.Resume(); err != nil {
			s.Logger().Error("QUIC at " + socket.http3.Addr().String() + ": " + err.Error())
		}
	}
}

// descriptor is what a socket's descriptor is taken from.
type descriptor interface {
	syscall.Conn
	File() (*os.File, error)
}

// descriptor returns the socket itself.
func (s *socket) descriptor() descriptor {
	switch {
	case s.packets != nil:
		return s.packets.UDP()
	case s.http3 != nil:
		return s.http3.UDP()
	}
	return s.Listener.(descriptor)
}
