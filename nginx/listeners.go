package nginx

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net/http"
	"slices"

	"github.com/culvert-go/culvert/nginx/internal/engine"
	"github.com/culvert-go/culvert/server"
)

// Listener is one address of the configuration, and what is served there.
type Listener struct {
	// Network is "tcp4", "tcp6" or "unix", as for net.Listen: "[::]:80" is IPv6 alone (nginx's ipv6only=on).
	Network string
	// Address is as net.Listen takes it: "0.0.0.0:80" for every IPv4 address, "[::]:80" for every IPv6 address, or the path
	// of a unix socket.
	Address string
	// TLS is nil for cleartext. It picks the certificate by the client's server name, from the configuration that is current
	// when each handshake begins. The versions and certificates of the address follow a Reload, also from a program's own
	// crypto/tls listener.
	TLS *tls.Config
	// HTTP2 reports whether HTTP/2 is to be spoken: by ALPN over TLS, by prior knowledge beside HTTP/1.1 on cleartext.
	HTTP2 bool
	// ProxyProtocol reports whether each connection begins with a header of the PROXY protocol, below TLS. A program that
	// accepts connections by itself removes it. If its connections have a method ProxyAddrs() (client, server net.Addr),
	// $proxy_protocol_addr and "real_ip_header proxy_protocol" go by that, with the hooks of NewServer.
	ProxyProtocol bool
	// Handler serves the requests of the address, by the configuration that is current when each of them arrives. When the
	// current configuration has no such address, or the Server is closed, it responds with 503.
	//
	// Where a request of it came to is http.LocalAddrContextKey's address, if an address and its wildcard share a socket.
	// $request_uri and locations are found in Request.RequestURI, which middleware such as http.StripPrefix leaves alone.
	// A client's certificate is that of Request.TLS: "ssl_verify_client on" refuses requests without it.
	Handler http.Handler

	s        *Server
	settings engine.Listener
}

// Listeners returns the addresses of http in the current configuration, not those of stream and of QUIC, in the order in
// which the file names them first. They are
// for programs that serve the handlers by themselves; a program that calls Start does not need them.
//
// The handlers serve in any http.Server as well. What the configuration says of connections is in the server that NewServer
// returns.
func (s *Server) Listeners() []Listener {
	var list []Listener
	for _, l := range s.current.Load().engine.Listeners() {
		key := keyOf(l)
		list = append(list, Listener{
			Network: l.Network, Address: l.Address, TLS: s.currentTLS(key, l), HTTP2: l.HTTP2, ProxyProtocol: l.ProxyProtocol,
			Handler: currentHandler{s, key}, s: s, settings: l,
		})
	}
	return list
}

// NewServer returns a server of l's Handler and TLS for connections that the program accepts: its Serve, or ServeTLS with empty
// names of files if TLS is not nil, takes the program's net.Listener. It has what the configuration that l is of says of
// connections: protocols, keepalive_timeout, client_header_timeout and large_client_header_buffers. Its OnRefused responds to
// malformed requests with the configuration's error pages and logs them. Its ConnContext and
// ConnState are what $connection, $connection_requests, keepalive_requests, keepalive_time and stub_status count by; a
// server that lacks them numbers its connections 0, and each request is the first of its connection. The program ends it
// behind Shutdown or Close of the Server, which do not know it. l must be of Listeners.
func (l Listener) NewServer() *server.Server {
	s := connectionServer(l.settings, l.Handler)
	s.TLSConfig = l.TLS
	s.ErrorLog = slog.NewLogLogger(l.s.Logger().Handler(), slog.LevelInfo)
	return s
}

// errNotConfigured ends a handshake at an address that the current configuration does not serve with TLS.
var errNotConfigured = errors.New("nginx: the address is no longer configured for TLS")

// currentTLS returns a listener's TLS by the configuration that is current at each handshake, nil if the first one's is.
func (s *Server) currentTLS(key socketKey, first engine.Listener) *tls.Config {
	if first.TLS == nil {
		return nil
	}
	follow := first.TLS.Clone()
	follow.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		now := s.current.Load().listeners[key].TLS
		if now == nil {
			return nil, errNotConfigured
		}
		config, err := now.GetConfigForClient(hello)
		if err != nil {
			return nil, err
		}
		if config == nil {
			config = now
		}
		if i := slices.Index(config.NextProtos, "h2"); i >= 0 && !first.HTTP2 { // the program's server speaks what it spoke
			config = config.Clone()
			config.NextProtos = slices.Delete(slices.Clone(config.NextProtos), i, i+1)
		}
		return config, nil
	}
	return follow
}

// currentHandler serves an address by the current configuration.
type currentHandler struct {
	s   *Server
	key socketKey
}

// ServeHTTP implements http.Handler.
func (h currentHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g, ok := h.s.enter()
	if !ok {
		http.Error(w, "server closed", http.StatusServiceUnavailable)
		return
	}
	defer g.active.Leave()
	handler := g.listeners[h.key].Handler
	if handler == nil {
		http.Error(w, "no longer configured", http.StatusServiceUnavailable)
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(g.ctx, cancel)()
	handler.ServeHTTP(w, r.WithContext(ctx))
}

// enter counts a request of the current generation, which must leave it. It reports false when the server is closed.
func (s *Server) enter() (*generation, bool) {
	for {
		g := s.current.Load()
		if _, ok := g.active.Enter(); ok {
			return g, true
		}
		if s.current.Load() == g {
			return nil, false
		}
	}
}
