package http3

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/quic-go/quic-go"
)

// Server has the connections of one configuration. It is safe for concurrent use by multiple goroutines.
type Server struct {
	socket   *Socket
	settings Settings
	quic     *quic.Config
	release  sync.Once

	mu      sync.Mutex
	conns   map[*conn]struct{}
	stopped bool
	open    sync.WaitGroup // connections, and what ends them
}

func newServer(k *Socket, settings Settings) *Server {
	return &Server{socket: k, settings: settings, quic: settings.quicConfig(), conns: map[*conn]struct{}{}}
}

// serve serves a connection on a goroutine of its own. It reports false if the Server has stopped.
func (s *Server) serve(c *quic.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return false
	}
	conn := connOf(s, c)
	s.conns[conn] = struct{}{}
	s.open.Go(conn.serve)
	return true
}

// remove is called when a connection has ended.
func (s *Server) remove(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

// Retire stops accepting, and sends GOAWAY to the clients: requests that have begun are served, others are rejected, and
// may be repeated over a new connection.
func (s *Server) Retire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	for c := range s.conns {
		c.retire()
	}
}

// Shutdown is Retire, and returns when all connections have ended. When ctx ends, they are cut off, and its error is
// returned; handlers may still run then.
func (s *Server) Shutdown(ctx context.Context) error {
	s.Retire()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.open.Wait()
	}()
	defer s.release.Do(func() { s.socket.release(s) })
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		s.cut()
		return ctx.Err()
	}
}

// cut ends all connections at once.
func (s *Server) cut() {
	for _, c := range s.all() {
		c.close()
	}
}

// drain sends GOAWAY to all clients, and cuts the connections that have not ended when ctx does.
func (s *Server) drain(ctx context.Context) {
	conns := s.all()
	for _, c := range conns {
		c.retire()
	}
	for _, c := range conns {
		select {
		case <-c.quic.Context().Done():
		case <-ctx.Done():
			c.close()
		}
	}
}

// all returns the connections.
func (s *Server) all() []*conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.conns))
}
