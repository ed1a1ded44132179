package engine

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/culvert-go/culvert/nginx/conf"
)

// http3Module has what a "listen … quic" needs (ngx_http_v3_module.c).
var http3Module = module{
	directives: []directive{
		{name: "http3", compile: setFlag(http3Slot, func(s *http3Settings) *bool { return &s.on })},
		{name: "http3_hq", compile: http3HQ},
		{name: "http3_max_concurrent_streams", compile: setNumber(http3Slot, func(s *http3Settings) *int { return &s.maxStreams })},
		{name: "http3_stream_buffer_size", compile: setSize(http3Slot, func(s *http3Settings) *int64 { return &s.streamBuffer })},
		{name: "quic_host_key", compile: quicHostKey},
		{name: "quic_retry", compile: setFlag(http3Slot, func(s *http3Settings) *bool { return &s.retry })},
	},
}

// http3Settings are those of servers. The default server's decide for an address, but for on.
type http3Settings struct {
	on           bool
	maxStreams   int
	streamBuffer int64
	retry        bool
	hostKey      []byte // of tokens; nil: random
}

var http3Slot = newSlot(http3Settings{on: true, maxStreams: 128, streamBuffer: 64 << 10})

// http3HQ compiles "http3_hq on|off": HTTP/0.9 over QUIC is for tests of interoperability.
func http3HQ(_ *compiler, _ *level, d *conf.Directive) error {
	if d.Flag() {
		return d.Errorf("\"http3_hq\" is not supported by culvert: only HTTP/3 is spoken over QUIC")
	}
	return nil
}

// quicHostKey compiles "quic_host_key file".
func quicHostKey(c *compiler, l *level, d *conf.Directive) error {
	name := absolute(c.confDir, d.Args[0])
	key, err := os.ReadFile(name)
	if err != nil {
		return d.Errorf("open() \"%s\" failed (%s)", name, conf.Errno(err))
	}
	if len(key) == 0 {
		return d.Errorf("\"%s\" zero key size", name)
	}
	http3Slot.edit(l).hostKey = key
	return nil
}

// notWithQUIC are parameters of listen that are about connections of TCP.
var notWithQUIC = []string{"fastopen", "backlog", "accept_filter", "deferred", "multipath", "ssl", "http2", "so_keepalive", "proxy_protocol"}

// checkQUIC refuses parameters that do not go with quic.
func (r *listenRule) checkQUIC() error {
	if incompatible := parameterOf(r.at, notWithQUIC); incompatible != "" {
		return r.at.Errorf("\"listen\" directive \"%s\" parameter is incompatible with \"quic\"", incompatible)
	}
	if isUnix(r.at.Args[0]) {
		return r.at.Errorf("QUIC over unix sockets is not supported by culvert")
	}
	return nil
}

// QUICListener is one socket of UDP on which HTTP/3 is served.
type QUICListener struct {
	// Network is "udp4" or "udp6".
	Network string
	// Address is that of a Listener.
	Address string
	// TLS picks the certificate by the client's server name.
	TLS *tls.Config
	// IdleTimeout is how long an idle client connection is kept (keepalive_timeout of the default server); 0 ends the
	// connection after each response.
	IdleTimeout time.Duration
	// HandshakeTimeout is how long a client may be silent during its handshake (client_header_timeout).
	HandshakeTimeout time.Duration
	// MaxHeaderBytes bounds a request's header (large_client_header_buffers).
	MaxHeaderBytes int
	// MaxStreams bounds the requests of a connection at a time (http3_max_concurrent_streams).
	MaxStreams int
	// StreamBuffer is how much of a body a client may send in advance (http3_stream_buffer_size).
	StreamBuffer int
	// Retry reports whether clients must show that they receive what is sent to their address (quic_retry).
	Retry bool
	// HostKey is what the keys of tokens are derived from; nil: they are random (quic_host_key).
	HostKey []byte
	// ConnState and ConnContext must be set as the server's, as those of a Listener.
	ConnState   func(net.Conn, http.ConnState)
	ConnContext func(ctx context.Context, c net.Conn) context.Context
	// Handler serves the requests.
	Handler http.Handler
}

// QUIC returns the sockets of HTTP/3, in the order in which they are first named.
func (e *Engine) QUIC() []QUICListener { return e.quic }

// quicListener returns the QUICListener of a socket.
func (k *socket) quicListener(e *Engine, config *tls.Config) QUICListener {
	standard := k.host(k.addr.Addr()).standard.level
	conn, settings := connectionSlot.of(standard), http3Slot.of(standard)
	network := "udp4"
	if k.addr.Addr().Is6() {
		network = "udp6"
	}
	return QUICListener{
		Network:          network,
		Address:          k.addr.String(),
		TLS:              config,
		IdleTimeout:      keepaliveSlot.of(standard).timeout,
		HandshakeTimeout: conn.headerTimeout,
		MaxHeaderBytes:   conn.headerBytes,
		MaxStreams:       settings.maxStreams,
		StreamBuffer:     int(settings.streamBuffer),
		Retry:            settings.retry,
		HostKey:          settings.hostKey,
		ConnState:        e.shared.counts.track,
		ConnContext:      e.shared.conns.Context,
		Handler:          e.handler(k),
	}
}

// checkQUICVersions checks that the default server of each address may speak TLS 1.3 (ngx_http_ssl_init).
func (k *socket) checkQUICVersions() error {
	for _, v := range k.hosts {
		s := v.standard
		if most := sslSlot.of(s.level).max; most != 0 && most < tls.VersionTLS13 {
			return s.at.Errorf("\"ssl_protocols\" must enable TLSv1.3 for the \"listen ... quic\" directive")
		}
	}
	return nil
}

// protocols returns the protocols that are offered for a server by ALPN.
func (k *socket) protocols(s *server) []string {
	switch {
	case k.quic && http3Slot.of(s.level).on:
		return []string{"h3"}
	case k.quic:
		return []string{""} // a name that no client can offer: without one, crypto/tls lets clients in that offer none
	case k.allowsHTTP2(s):
		return []string{"h2", "http/1.1"}
	}
	return []string{"http/1.1"}
}

// misdirected reports whether a server does not speak the protocol that was negotiated for another one.
func (x *exchange) misdirected() bool {
	switch k := x.socket; x.HTTP.ProtoMajor {
	case 2:
		return k.http2 && !k.allowsHTTP2(x.server)
	case 3:
		return k.quic && !http3Slot.of(x.server.level).on
	}
	return false
}

// parameterOf returns the first of the parameters that d has, with or without a value.
func parameterOf(d *conf.Directive, names []string) string {
	for _, name := range names {
		if slices.ContainsFunc(d.Args[1:], func(p string) bool { return p == name || strings.HasPrefix(p, name+"=") }) {
			return name
		}
	}
	return ""
}
