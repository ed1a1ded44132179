package nginx

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/culvert-go/culvert/nginx/internal/engine"
	"github.com/culvert-go/culvert/nginx/internal/http3"
	"github.com/culvert-go/culvert/nginx/internal/stream"
)

// acceptPause is the wait after an Accept that failed.
const acceptPause = 50 * time.Millisecond

// socketKey is a socket's network and address. Equal keys of two configurations are the same socket.
type socketKey struct {
	network, address string
	quic             bool
}

func keyOf(l engine.Listener) socketKey { return socketKey{network: l.Network, address: l.Address} }

func keyOfStream(l engine.StreamListener) socketKey {
	return socketKey{network: l.Network, address: l.Address}
}

func keyOfQUIC(l engine.QUICListener) socketKey {
	return socketKey{network: l.Network, address: l.Address, quic: true}
}

// keysOf returns the keys of all sockets of a configuration. One that http and stream have is there twice.
func keysOf(e *engine.Engine) (keys []socketKey) {
	for _, l := range e.Listeners() {
		keys = append(keys, keyOf(l))
	}
	for _, l := range e.Streams() {
		keys = append(keys, keyOfStream(l))
	}
	for _, l := range e.QUIC() {
		keys = append(keys, keyOfQUIC(l))
	}
	return keys
}

// isUDP reports whether a socket receives datagrams.
func (k socketKey) isUDP() bool { return strings.HasPrefix(k.network, "udp") }

// socket is a bound listener that outlives configurations: the generation that serves it at
// the moment receives its connections, and handing it over loses none.
type socket struct {
	net.Listener                 // nil for datagrams
	packets      *stream.Packets // those of stream
	http3        *http3.Socket   // those of QUIC
	mu           sync.Mutex
	current      *view
	accepting    chan struct{} // closed when accept has returned; nil: it does not run
	paused       bool
	closed       bool
}

// view is one generation's listener of a socket. Closing it leaves the socket
// open.
type view struct {
	socket *socket
	conns  chan net.Conn
	done   chan struct{}
	once   sync.Once
}

// view makes a new generation's listener and the one that gets the connections
// from now on. The first call, and one behind pause, starts to accept. The view before must be closed
// after that.
func (s *socket) view() *view {
	v := &view{socket: s, conns: make(chan net.Conn), done: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current = v
	if s.paused {
		s.paused = false
		_ = s.Listener.(deadliner).SetDeadline(time.Time{})
	}
	if s.accepting == nil {
		s.accepting = make(chan struct{})
		go s.accept(s.accepting)
	}
	return v
}

// deadliner is a listener whose Accept can be interrupted.
type deadliner interface{ SetDeadline(time.Time) error }

// pause stops accepting until a view is made: connections wait in the system's queue, where another process may accept them. What was
// accepted before has been delivered when it returns.
func (s *socket) pause() error {
	l, ok := s.Listener.(deadliner)
	if !ok {
		return errors.New("nginx: the socket " + s.Addr().String() + " can't be paused")
	}
	s.mu.Lock()
	running := s.accepting
	s.paused = true
	err := l.SetDeadline(time.Unix(1, 0))
	s.mu.Unlock()
	if running != nil && err == nil {
		<-running
		s.mu.Lock()
		s.accepting = nil
		s.mu.Unlock()
	}
	return err
}

// stopped reports whether accept must return for an error.
func (s *socket) stopped(err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.paused || errors.Is(err, net.ErrClosed)
}

// awaitDelivered returns when a view has what was accepted before Close, or when ctx ends: the client of a connection that
// another process could have accepted must not lose it.
func (s *socket) awaitDelivered(ctx context.Context) {
	s.mu.Lock()
	running := s.accepting
	s.mu.Unlock()
	if running == nil {
		return
	}
	select {
	case <-running:
	case <-ctx.Done():
	}
}

func (s *socket) accept(running chan<- struct{}) {
	defer close(running)
	for {
		conn, err := s.Listener.Accept()
		if err != nil {
			if s.stopped(err) {
				return
			}
			time.Sleep(acceptPause) // out of descriptors, most likely: others must end first
			continue
		}
		s.deliver(conn)
	}
}

// deliver gives conn to the view of the moment; one that has just been closed
// passes it on to its successor.
func (s *socket) deliver(conn net.Conn) {
	for {
		s.mu.Lock()
		v, closed, paused := s.current, s.closed, s.paused
		s.mu.Unlock()
		select {
		case v.conns <- conn:
			return
		case <-v.done:
			if closed || paused { // it was passed on by stream if paused
				conn.Close()
				return
			}
		}
	}
}

// Close stops accepting for good. The connections of QUIC, which have no socket of their own, are kept.
func (s *socket) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	switch {
	case s.packets != nil:
		return s.packets.Close()
	case s.http3 != nil:
		return s.http3.Close()
	}
	return s.Listener.Close()
}

func (v *view) Accept() (net.Conn, error) {
	select {
	case conn := <-v.conns:
		return conn, nil
	case <-v.done:
		return nil, net.ErrClosed
	}
}

func (v *view) Close() error {
	v.once.Do(func() { close(v.done) })
	return nil
}

func (v *view) Addr() net.Addr { return v.socket.Addr() }
