package server

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"time"
)

// firstRequestWithin is how long Shutdown waits for the first request of a connection that was accepted before, and for the
// rest of a header.
const firstRequestWithin = 5 * time.Second

// goAwayEvery is how often Shutdown sends a GOAWAY to connections of HTTP/2: one may begin while it waits.
const goAwayEvery = 500 * time.Millisecond

// RegisterOnShutdown registers a function that Shutdown calls, on a goroutine of its own. It is for connections that were
// hijacked.
func (s *Server) RegisterOnShutdown(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onShutdown = append(s.onShutdown, f)
}

// SetKeepAlivesEnabled controls whether connections are kept for further requests. By default they are. If v is false, it
// closes the idle connections; those of HTTP/2 end when they have served the streams that they have.
func (s *Server) SetKeepAlivesEnabled(v bool) {
	s.disableKeepAlives.Store(!v)
	if !v {
		s.closeIdle(false)
		s.goAway()
	}
}

// Close closes the listeners and all connections at once, but for those that were hijacked. It returns the error of closing a
// listener. A connection of TLS may take up to 5 seconds more to send its client an alert, for which Close does not wait.
func (s *Server) Close() error {
	s.inShutdown.Store(true)
	err := s.closeListeners()
	s.serving.Wait()
	s.emptyQueue()
	for _, c := range s.all() {
		c.close()
	}
	return err
}

// all returns the connections. They are closed without s.mu, which each connection needs to begin and to end.
func (s *Server) all() []*conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.conns))
}

// Shutdown closes the listeners and the idle connections, and waits until the others have served their requests, or until ctx
// has ended, whose error it returns then. A connection that was accepted and has sent no request yet is served one, for
// which Shutdown waits up to 5 seconds; so is one that waits for a place. It waits as long for the
// rest of a request's header. It does not wait for connections that were hijacked.
func (s *Server) Shutdown(ctx context.Context) error {
	s.inShutdown.Store(true)
	err := s.closeListeners()
	s.mu.Lock()
	for _, f := range s.onShutdown {
		go f()
	}
	s.mu.Unlock()
	s.serving.Wait()
	s.closeIdle(true)
	again := time.NewTicker(goAwayEvery)
	defer again.Stop()
	for {
		drained := s.awaitDrained()
		if drained == nil {
			return err
		}
		s.goAway()
		select {
		case <-drained:
			return err
		case <-again.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (s *Server) closeListeners() (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for l := range s.listeners {
		if e := (*l).Close(); e != nil && err == nil {
			err = e
		}
	}
	return err
}

// awaitDrained returns a channel that is closed when there is no connection any more, nil if there is none now.
func (s *Server) awaitDrained() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.conns) == 0 { // then none waits for a place
		return nil
	}
	if s.drained == nil {
		s.drained = make(chan struct{})
	}
	return s.drained
}

// forget removes a connection that has ended or was hijacked. Another one may have its place.
func (s *Server) forget(c *conn) {
	var todo changes
	s.mu.Lock()
	delete(s.conns, c)
	s.release(c)
	s.fill(&todo)
	if len(s.conns) == 0 && s.drained != nil {
		close(s.drained)
		s.drained = nil
	}
	s.mu.Unlock()
	s.do(todo)
}

// closeIdle closes the connections that wait for a request; with fresh also those that wait for their first one, or for the
// rest of a header, when they have done so for long enough.
func (s *Server) closeIdle(fresh bool) {
	for _, c := range s.all() {
		switch {
		case c.closeIf(http.StateIdle):
		case fresh && c.is(http.StateNew):
			c.boundFirstRequest(c.accepted)
		case fresh && c.is(stateHeader):
			time.AfterFunc(firstRequestWithin, func() { c.closeIf(stateHeader) })
		}
	}
}

// boundFirstRequest closes the connection if its first request, which it could send since a time, does not come: Shutdown
// waits for it.
func (c *conn) boundFirstRequest(since time.Time) {
	time.AfterFunc(time.Until(since.Add(firstRequestWithin)), func() {
		if !c.closeIf(http.StateNew) {
			c.closeIf(stateHeader) // it has begun meanwhile
		}
	})
}
