package nginx

import (
	"context"
	"sync"
	"time"

	"github.com/culvert-go/culvert/wsupgrade"
)

const (
	// stopGrace is how long WebSockets have to respond to the Close frame that they are sent by Close. nginx sends none: its
	// clients see the code 1006.
	stopGrace = 3 * time.Second
	// quitGrace is the same for Shutdown.
	quitGrace = 10 * time.Second
)

// Shutdown stops accepting, and returns when all requests and tunnels have ended and the configuration is released.
// WebSockets, which might never end, are sent a Close frame with 1001, and are cut ten seconds later; tunnels of other protocols
// are waited for. When ctx ends, everything that still runs is cut off, and its error is returned. It may be called
// more than once; Close cuts one that waits short. An idle connection is closed
// half a second after the begin: a request that a client sends on it until then gets a response, the last one of that
// connection. So it is with those of a former configuration behind a Reload.
func (s *Server) Shutdown(ctx context.Context) error {
	stop := context.AfterFunc(ctx, s.cut)
	defer stop()
	if s.close() {
		var closing sync.WaitGroup
		closing.Go(s.closeWebSockets)
		for _, socket := range s.sockets { // which change no more
			socket.awaitDelivered(s.running)
		}
		s.finish()
		closing.Wait()
		close(s.ended)
	}
	<-s.ended
	return ctx.Err()
}

// Close ends everything at once, but for the WebSockets, which are sent a Close frame with 1001 and have three seconds to
// respond. It returns when everything has ended. The error is always nil.
func (s *Server) Close() error {
	if !s.close() {
		s.cut()
		<-s.ended
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopGrace)
	defer cancel()
	_ = s.tunnels.Drain(ctx, wsupgrade.GoingAway)
	s.cut()
	s.finish()
	close(s.ended)
	return nil
}

// close stops accepting, and reports whether it was not closed before.
func (s *Server) close() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.closed = true
	closeAll(s.sockets)
	s.closeInherited()
	return true
}

// closeWebSockets sends Close frames, also to WebSockets of which the handshake is under way.
func (s *Server) closeWebSockets() {
	late := time.AfterFunc(quitGrace, func() {
		for t := range s.tunnels.All() {
			if t.Protocol == "websocket" {
				t.Abort()
			}
		}
	})
	defer late.Stop()
	_ = s.tunnels.Drain(s.running, wsupgrade.GoingAway)
}

// finish returns when everything has ended.
func (s *Server) finish() {
	s.current.Load().finish(s.running)
	s.old.Wait()
}

func closeAll(sockets map[socketKey]*socket) {
	for _, socket := range sockets {
		socket.Close()
	}
}
