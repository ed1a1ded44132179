package engine

import (
	"context"
	"crypto/tls"
	"errors"
	"time"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/certs"
	"github.com/culvert-go/culvert/nginx/internal/stream"
)

// streamSSLModule ends TLS in stream (ngx_stream_ssl_module.c).
var streamSSLModule = module{
	directives: append([]directive{
		{name: "ssl_alpn", compile: sslALPN},
		{name: "ssl_handshake_timeout", compile: setDuration(streamSSLSlot, func(s *streamSSLSettings) *time.Duration { return &s.handshakeTimeout })},
	}, sslModule.directives...),
}

var streamSSLSlot = newSlot(streamSSLSettings{handshakeTimeout: time.Minute})

// streamSSLSettings are those that http has not.
type streamSSLSettings struct {
	handshakeTimeout time.Duration
	protocols        []string // ssl_alpn
}

// sslALPN compiles "ssl_alpn protocol ...".
func sslALPN(_ *compiler, l *level, d *conf.Directive) error {
	for _, name := range d.Args {
		if len(name) > 255 {
			return d.Errorf("\"ssl_alpn\" directive protocol too long")
		}
	}
	streamSSLSlot.edit(l).protocols = d.Args
	return nil
}

// streamTLS returns the configuration of a socket, nil for cleartext. The client's server name selects the server.
func (k *socket) streamTLS(c *compiler) (*tls.Config, error) {
	if !k.ssl {
		return nil, nil
	}
	configs := map[*stream.Server]handshakes{}
	rejects := map[*stream.Server]bool{}
	for _, s := range k.servers {
		settings := sslSlot.of(s.level)
		rejects[s.stream] = settings.reject
		if len(settings.certs) == 0 && !settings.reject && k.defaultOf(s) {
			err := k.sslListen(s).Errorf("no \"ssl_certificate\" is defined for the \"listen ... ssl\" directive")
			if err := c.fail(err); err != nil {
				return nil, err
			}
		}
		config, err := s.tlsConfig(nil, []string{"http/1.1"})
		if err == nil && len(settings.certs) > 0 {
			config.NextProtos = streamSSLSlot.of(s.level).protocols
			configs[s.stream], err = s.handshakes(config, "stream")
		}
		if err := c.fail(err); err != nil {
			return nil, err
		}
	}
	base := &tls.Config{}
	base.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		s := stream.ChooseByName(hello)
		if s == nil {
			return nil, errUnknownServer
		}
		if rejects[s] {
			return rejecting, nil
		}
		h, ok := configs[s]
		if !ok {
			h = configs[k.host(addrIP(hello.Conn.LocalAddr())).standard.stream]
		}
		return h.begin(hello, stream.SessionOf(hello).Conn), nil
	}
	return base, nil
}

// defaultOf reports whether s is the default server of an address.
func (k *socket) defaultOf(s *server) bool {
	for _, v := range k.hosts {
		if v.standard == s {
			return true
		}
	}
	return false
}

// sslListen returns the listen of a server that wants TLS, or another one.
func (k *socket) sslListen(s *server) *conf.Directive {
	for _, rule := range s.listens {
		if rule.ssl {
			return rule.at
		}
	}
	return s.listens[0].at
}

var errUnknownServer = errors.New("the server that the client has named is not known")

var errNoClientCertificate = errors.New("client sent no required SSL certificate")

// sessionVerifier returns what checks the certificates of a server's clients, nil if they need none.
func sessionVerifier(s *server) func(*stream.Session) error {
	rule := &sslSlot.of(s.level).client
	if rule.verify == "" {
		return nil
	}
	return func(session *stream.Session) error {
		chain := session.TLS.PeerCertificates
		session.ClientVerified = true
		if len(chain) == 0 {
			if rule.verify == "on" {
				return errNoClientCertificate
			}
			return nil
		}
		err := sslSlot.of(s.level).client.check(context.Background(), chain, session.Error)
		session.ClientError = err
		if err == nil || rule.verify == "optional_no_ca" && certs.IsUnknownAuthority(err) {
			return nil
		}
		return errors.New("client SSL certificate verify error: " + err.Error())
	}
}
