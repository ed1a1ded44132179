package http3

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"sync/atomic"

	"github.com/quic-go/quic-go"
	h3 "github.com/quic-go/quic-go/http3"
)

// noError ends a connection that has nothing wrong (RFC 9114 section 8.1).
const noError = quic.ApplicationErrorCode(h3.ErrCodeNoError)

// errClosed ends the handshakes of clients of a socket that nothing serves.
var errClosed = errors.New("http3: the address is not served")

// Socket is a socket of UDP whose connections are served by Servers, one after the other. It is safe for concurrent use by
// multiple goroutines.
type Socket struct {
	udp     *net.UDPConn
	host    []byte // key
	address quic.TokenGeneratorKey
	reset   quic.StatelessResetKey
	current atomic.Pointer[Server] // that accepts
	started handshakes

	mu        sync.Mutex
	transport *quic.Transport // nil: nothing is read
	listener  *quic.Listener
	accepting chan struct{}        // closed when no connection of the listener is accepted any more
	servers   map[*Server]struct{} // that have connections, or may get some
	suspended bool
	closed    bool
	ended     bool // the socket itself is closed
}

// NewSocket returns a Socket over a socket of UDP, which it owns. Processes with the same host key know each other's tokens;
// without one the tokens are the Socket's own.
func NewSocket(udp *net.UDPConn, hostKey []byte) *Socket {
	k := &Socket{udp: udp, host: hostKey, servers: map[*Server]struct{}{}}
	k.address, k.reset = tokenKeys(hostKey)
	return k
}

// HasHostKey reports whether the Socket was made with a host key. Connections have been given tokens by it, so that it can't change.
func (k *Socket) HasHostKey(key []byte) bool { return bytes.Equal(k.host, key) }

// Addr returns the address of the socket.
func (k *Socket) Addr() net.Addr { return k.udp.LocalAddr() }

// UDP returns the socket itself, which must not be read, written or closed.
func (k *Socket) UDP() *net.UDPConn { return k.udp }

// Serve returns a Server that gets the connections from now on. The first call begins to read. The former Server is to be
// ended after it. Shutdown must be called for each.
func (k *Socket) Serve(settings Settings) (*Server, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return nil, net.ErrClosed
	}
	s := newServer(k, settings)
	if k.listener == nil && !k.suspended {
		if err := k.start(s); err != nil {
			return nil, err
		}
	}
	k.current.Store(s)
	k.servers[s] = struct{}{}
	return s, nil
}

// start begins to accept, and to read if nothing does. The caller holds k.mu.
func (k *Socket) start(first *Server) error {
	fresh := k.transport == nil
	if fresh {
		k.transport = &quic.Transport{
			Conn: k.udp, TokenGeneratorKey: &k.address, StatelessResetKey: &k.reset,
			VerifySourceAddress: k.verifies, ConnContext: k.begin,
		}
	}
	config := first.quic.Clone()
	config.GetConfigForClient = func(*quic.ClientInfo) (*quic.Config, error) {
		if s := k.current.Load(); s != nil {
			return s.quic, nil
		}
		return nil, errClosed
	}
	k.current.Store(first)
	l, err := k.transport.Listen(&tls.Config{GetConfigForClient: k.tlsFor, MinVersion: tls.VersionTLS13}, config)
	if err != nil {
		k.current.Store(nil)
		if fresh {
			k.stopReading()
		}
		return err
	}
	k.listener, k.accepting = l, make(chan struct{})
	go k.accept(l, k.accepting)
	return nil
}

// connKey is for the *conn in the context of a connection.
type connKey struct{}

// begin is the transport's ConnContext: it is called with the first datagram of a connection.
func (k *Socket) begin(ctx context.Context, _ *quic.ClientInfo) (context.Context, error) {
	s := k.current.Load()
	if s == nil {
		return nil, errClosed
	}
	c := new(conn)
	ctx = context.WithValue(k.started.begin(ctx), connKey{}, c)
	if s.settings.ConnContext != nil {
		ctx = s.settings.ConnContext(ctx, c)
	}
	return ctx, nil
}

// verifies reports whether a client must show that it receives what is sent to its address.
func (k *Socket) verifies(client net.Addr) bool {
	s := k.current.Load()
	return s != nil && s.settings.Retry || k.started.many(client)
}

// tlsFor returns the configuration of a handshake.
func (k *Socket) tlsFor(hello *tls.ClientHelloInfo) (*tls.Config, error) {
	s := k.current.Load()
	if s == nil {
		return nil, errClosed
	}
	config := s.settings.TLS
	if choose := config.GetConfigForClient; choose != nil {
		chosen, err := choose(hello)
		if err != nil {
			return nil, err
		}
		if chosen != nil {
			config = chosen
		}
	}
	return config, nil
}

func (k *Socket) accept(l *quic.Listener, done chan struct{}) {
	defer close(done)
	for {
		c, err := l.Accept(context.Background())
		if err != nil { // the listener is closed
			return
		}
		k.started.accepted(c.Context())
		k.deliver(c)
	}
}

// deliver gives a connection to the Server of the moment; one that has just stopped has a successor, unless nothing is to be
// served any more.
func (k *Socket) deliver(c *quic.Conn) {
	for former := (*Server)(nil); ; {
		s := k.current.Load()
		if s == nil || s == former {
			_ = c.CloseWithError(noError, "")
			return
		}
		if s.serve(c) {
			return
		}
		former = s
	}
}

// Close stops accepting. The socket itself is closed when the Servers have ended.
func (k *Socket) Close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return nil
	}
	k.closed = true
	k.stopAccepting()
	return k.closeUnused()
}

// Reopen reverts Close, so that Serve may be called again. It reports false if the socket itself is closed.
func (k *Socket) Reopen() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ended {
		return false
	}
	k.closed = false
	return true
}

// stopAccepting closes the listener. The caller holds k.mu.
func (k *Socket) stopAccepting() {
	if k.listener == nil {
		return
	}
	_ = k.listener.Close()
	<-k.accepting
	k.listener = nil
}

// closeUnused closes the socket if nothing needs it any more. The caller holds k.mu.
func (k *Socket) closeUnused() error {
	if !k.closed || k.ended || len(k.servers) > 0 {
		return nil
	}
	k.ended = true
	k.current.Store(nil)
	k.stopReading()
	return k.udp.Close()
}

// stopReading ends the transport. The caller holds k.mu.
func (k *Socket) stopReading() {
	if k.transport != nil {
		_ = k.transport.Close()
		k.transport = nil
	}
}

// release is called when a Server has ended.
func (k *Socket) release(s *Server) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.servers, s)
	_ = k.closeUnused()
}

// Suspend leaves the datagrams to another process: clients get GOAWAY, and the connections end, at the end of ctx at the
// latest. Nothing is read then until Resume is called.
func (k *Socket) Suspend(ctx context.Context) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.suspended = true
	k.stopAccepting()
	var drained sync.WaitGroup
	for s := range k.servers {
		drained.Go(func() { s.drain(ctx) })
	}
	drained.Wait()
	k.stopReading()
}

// Resume reverts Suspend.
func (k *Socket) Resume() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	current := k.current.Load()
	if !k.suspended || k.closed || current == nil {
		return nil
	}
	k.suspended = false
	return k.start(current)
}
