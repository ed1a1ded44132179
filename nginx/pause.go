package nginx

import "errors"

// Pause stops accepting connections and keeps the sockets: what arrives waits in the system's queues, or is accepted by a
// process that has them from HandOver. Requests and tunnels that run are completed under the configuration, and idle connections
// are closed half a second later. Reload accepts again. It is for a program that lets another process serve, and can take the service
// back. Datagrams of stream are still received, and the handlers of Listeners still serve. Pause does nothing on a Server
// that is paused; it is an error before Start.
func (s *Server) Pause() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return ErrClosed
	case !s.started:
		return errors.New("nginx: server was not started")
	case s.paused:
		return nil
	}
	for _, socket := range s.sockets {
		if socket.Listener == nil {
			continue
		}
		if err := socket.pause(); err != nil {
			return err
		}
	}
	s.paused = true
	g := s.current.Load()
	s.old.Go(func() {
		ctx, cancel := g.bounded(s.running)
		defer cancel()
		g.retire(ctx, nil)
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.closed {
			s.logEnded()
		}
	})
	return nil
}
