package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"

	"github.com/culvert-go/culvert/internal/netloop"
)

// Server serves HTTP. Its fields have the names, the zero values and the meaning of those of http.Server, but for what the
// package comment lists. They must not be changed once Serve was called. The zero Server is valid.
//
// The methods are safe for concurrent use by multiple goroutines.
type Server struct {
	// Addr is the TCP address that ListenAndServe and ListenAndServeTLS listen on, as host:port; "" means ":http" or
	// ":https".
	Addr string
	// Handler is called for each request; nil means http.DefaultServeMux.
	Handler http.Handler
	// DisableGeneralOptionsHandler passes "OPTIONS *" to Handler. Otherwise the server responds to it with 200.
	DisableGeneralOptionsHandler bool
	// TLSConfig is for ServeTLS and ListenAndServeTLS, which use a clone of it. It may be nil.
	TLSConfig *tls.Config
	// ReadTimeout bounds the time for a request, its body included. 0 and a negative value mean no bound.
	ReadTimeout time.Duration
	// ReadHeaderTimeout bounds the time for a TLS handshake, and then the time for a request's header. 0 means ReadTimeout,
	// a negative value no bound.
	ReadHeaderTimeout time.Duration
	// WriteTimeout bounds the time from the end of a request's header until its response is written. 0 and a negative value
	// mean no bound.
	WriteTimeout time.Duration
	// IdleTimeout bounds the wait for the next request. 0 means ReadTimeout, a negative value no bound.
	IdleTimeout time.Duration
	// MaxHeaderBytes bounds a request's header section, its request line included, and its trailers. 0 means
	// http.DefaultMaxHeaderBytes.
	MaxHeaderBytes int
	// TLSNextProto must be empty. One that is not nil disables HTTP/2 if Protocols is nil, as it does in http.Server.
	TLSNextProto map[string]func(*http.Server, *tls.Conn, http.Handler)
	// ConnState, if not nil, is called when a connection changes its state.
	ConnState func(net.Conn, http.ConnState)
	// ErrorLog receives errors of connections, panics of handlers and their mistakes; nil means the log package's standard
	// logger.
	ErrorLog *log.Logger
	// BaseContext returns the context that those of a listener's requests derive from; nil means context.Background.
	BaseContext func(net.Listener) context.Context
	// ConnContext, if not nil, returns the context that those of a connection's requests derive from. ctx derives from the
	// base context.
	ConnContext func(ctx context.Context, c net.Conn) context.Context
	// HTTP2 configures HTTP/2; nil means the defaults.
	HTTP2 *http.HTTP2Config
	// Protocols are those that the server speaks; nil means HTTP/1, and HTTP/2 over TLS.
	Protocols *http.Protocols

	// OnRefused, if not nil, is called with each request that no handler sees, since the server has refused it or has not
	// received all of its header, for an access log. It may write the response, for which it has 5 seconds if it does not
	// call http.ResponseController.SetWriteDeadline; otherwise the server sends r.Status and a line of text. The connection is
	// closed after it, so there is one call at most for a connection. A request without TLS where TLS is spoken is one of them
	// on Linux; elsewhere, and without OnRefused, a client that speaks HTTP there receives a 400. OnRefused is called on the connection's goroutine, for HTTP/1
	// only. w and r must not be used when it has returned.
	OnRefused func(w http.ResponseWriter, r *Refusal)

	// KeepFieldNames keeps the names of the fields of requests over HTTP/1 as the client has spelt them, and their order, for
	// proxy.Options.KeepFieldNames. It takes some memory for each request.
	KeepFieldNames bool

	// MaxConns bounds the connections that are served at once; 0 and a negative value mean no bound. One of HTTP/2 counts as
	// one: HTTP2 bounds its streams. One that is hijacked does not count from then on.
	//
	// Where there are as many, a new connection takes the place of the one that has waited longest for a request, if it has for
	// a quarter of a second; connections of HTTP/2 do not count as waiting, so without an IdleTimeout clients that keep idle ones
	// can hold every place. If there is none, the new one waits in the accept queue.
	MaxConns int
	// MaxConnsPerAddr bounds the connections of one client, those in the accept queue included; 0 and a negative value mean no
	// bound. A client is an IPv4 address, or a /64 network of IPv6, by the RemoteAddr of the net.Conn: behind a load balancer
	// that is the balancer's address, unless the Listener returns connections with the address of the PROXY protocol. Such a
	// RemoteAddr must not wait for the client: the connection is not accepted before it has returned. Clients without an IP
	// address have no bound. More connections are refused at once.
	MaxConnsPerAddr int
	// TrustedAddr, if not nil, reports whether MaxConnsPerAddr does not hold for a client, one's own networks perhaps. It is
	// called with the whole address, for each connection, and must not wait.
	TrustedAddr func(netip.Addr) bool
	// AcceptQueue is how many connections wait for a place when there are MaxConns: 0 means 128, a negative value none. They
	// are served in the order of their arrival. Each holds a descriptor, but no goroutine.
	AcceptQueue int
	// AcceptTimeout bounds the wait for a place. 0 means a second, a negative value none: the wait ends with the next look at
	// the queue, every 20 milliseconds.
	AcceptTimeout time.Duration
	// OverloadResponse has refused connections receive a 503 (Service Unavailable) with Retry-After, before they are closed.
	// Otherwise, and over TLS, whose handshake would cost more than a request, they are closed at once. ConnState and OnRefused
	// are not called for them; ConnStats counts them.
	OverloadResponse bool

	inShutdown        atomic.Bool
	disableKeepAlives atomic.Bool

	prepared   sync.Once
	prepareErr error
	standIn    *http.Server // for http.ServerContextKey, and for HTTP/2
	//lint:ignore SA1019 http.Server serves no connection that was accepted and looked at before.
	h2        *http2.Server // nil: HTTP/2 is not spoken
	parking   netloop.Set   // for idle connections
	parkAfter time.Duration // the constant, but for tests

	mu         sync.Mutex // guards what follows
	listeners  map[*net.Listener]struct{}
	conns      map[*conn]struct{}
	admission  admission
	onShutdown []func()
	drained    chan struct{} // closed when there is no connection any more; nil: not waited for
	serving    sync.WaitGroup
}

// prepare checks the fields, and makes the http.Server that stands for s.
func (s *Server) prepare() error {
	s.prepared.Do(func() { s.prepareErr = s.makeStandIn() })
	return s.prepareErr
}

var errNextProto = errors.New("server: TLSNextProto is not supported; use Protocols")

// makeStandIn makes what handlers find as http.ServerContextKey, and what configures HTTP/2.
func (s *Server) makeStandIn() error {
	if len(s.TLSNextProto) > 0 {
		return errNextProto
	}
	if s.MaxHeaderBytes < 0 {
		return fmt.Errorf("server: MaxHeaderBytes is %d", s.MaxHeaderBytes)
	}
	if s.parkAfter == 0 {
		s.parkAfter = parkAfter
	}
	s.standIn = &http.Server{Addr: s.Addr, Handler: http.HandlerFunc(s.serveStream),
		DisableGeneralOptionsHandler: s.DisableGeneralOptionsHandler, ReadTimeout: s.ReadTimeout,
		ReadHeaderTimeout: s.ReadHeaderTimeout, WriteTimeout: s.WriteTimeout, IdleTimeout: s.IdleTimeout,
		MaxHeaderBytes: s.MaxHeaderBytes, ErrorLog: s.ErrorLog, HTTP2: s.HTTP2, Protocols: s.Protocols}
	return s.configureHTTP2()
}

// protocols returns Protocols, or the default.
func (s *Server) protocols() (p http.Protocols) {
	if s.Protocols != nil {
		return *s.Protocols
	}
	p.SetHTTP1(true)
	p.SetHTTP2(s.TLSNextProto == nil)
	return p
}

// serveHTTP calls the handler.
func (s *Server) serveHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.RequestURI == "*" && r.Method == http.MethodOptions && !s.DisableGeneralOptionsHandler:
		w.Header().Set("Content-Length", "0")
	case s.Handler == nil:
		http.DefaultServeMux.ServeHTTP(w, r)
	default:
		s.Handler.ServeHTTP(w, r)
	}
}

func (s *Server) maxHeader() int {
	if s.MaxHeaderBytes > 0 {
		return s.MaxHeaderBytes
	}
	return http.DefaultMaxHeaderBytes
}

// headerTimeout returns the bound for a header section, 0 for none.
func (s *Server) headerTimeout() time.Duration { return either(s.ReadHeaderTimeout, s.ReadTimeout) }

// idleTimeout returns the bound for the wait for a request, 0 for none.
func (s *Server) idleTimeout() time.Duration { return either(s.IdleTimeout, s.ReadTimeout) }

// either returns d, or instead if d is 0; what is negative is 0.
func either(d, instead time.Duration) time.Duration {
	if d == 0 {
		d = instead
	}
	return max(d, 0)
}

// handshakeTimeout returns the bound for a TLS handshake, 0 for none: the shortest of three, as in http.Server.
func (s *Server) handshakeTimeout() (timeout time.Duration) {
	for _, d := range [...]time.Duration{s.ReadHeaderTimeout, s.ReadTimeout, s.WriteTimeout} {
		if d > 0 && (timeout == 0 || d < timeout) {
			timeout = d
		}
	}
	return timeout
}

// keepAlives reports whether connections are kept.
func (s *Server) keepAlives() bool { return !s.disableKeepAlives.Load() && !s.inShutdown.Load() }

func (s *Server) logf(format string, args ...any) {
	if s.ErrorLog != nil {
		s.ErrorLog.Printf(format, args...)
		return
	}
	log.Printf(format, args...)
}
