package nginx

import (
	"context"
	"crypto/tls"
	"net/http"
)

// Listener is one address of the configuration, and what is served there.
type Listener struct {
	// Network is "tcp4", "tcp6" or "unix", as for net.Listen: "[::]:80" is IPv6 alone (nginx's ipv6only=on).
	Network string
	// Address is as net.Listen takes it: "0.0.0.0:80" for every IPv4 address, "[::]:80" for every IPv6 address, or the path
	// of a unix socket.
	Address string
	// TLS is nil for cleartext. It picks the certificate by the client's server name. It is that of the configuration
	// that was current when Listeners was called.
	TLS *tls.Config
	// HTTP2 reports whether HTTP/2 is to be spoken: by ALPN over TLS, by prior knowledge beside HTTP/1.1 on cleartext.
	HTTP2 bool
	// ProxyProtocol reports whether each connection begins with a header of the PROXY protocol, below TLS.
	ProxyProtocol bool
	// Handler serves the requests of the address, by the configuration that is current when each of them arrives. When the
	// current configuration has no such address, or the Server is closed, it responds with 503.
	Handler http.Handler
}

// Listeners returns the addresses of the current configuration, in the order in which the file names them first. They are
// for programs that serve the handlers by themselves; a program that calls Start does not need them.
func (s *Server) Listeners() []Listener {
	var list []Listener
	for _, l := range s.current.Load().engine.Listeners() {
		list = append(list, Listener{
			Network: l.Network, Address: l.Address, TLS: l.TLS, HTTP2: l.HTTP2, ProxyProtocol: l.ProxyProtocol,
			Handler: currentHandler{s, keyOf(l)},
		})
	}
	return list
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
	handler := g.handlers[h.key]
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
