package engine

import (
	"crypto/tls"
	"crypto/x509"
	"net/netip"
	"strings"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/certs"
	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
	"github.com/culvert-go/culvert/nginx/internal/stream"
)

// streamProxyCertificate compiles proxy_ssl_certificate and proxy_ssl_certificate_key, which may have variables.
func streamProxyCertificate(c *compiler, l *level, d *conf.Directive) error {
	text := d.Args[0]
	if text != "" {
		text = absoluteText(c.confDir, text)
	}
	value, err := c.value(d, text)
	if s := streamProxySlot.edit(l); strings.HasSuffix(d.Name, "_key") {
		s.key, s.keyAt = value, d
	} else {
		s.cert, s.certAt = value, d
	}
	return err
}

// streamProxyFile compiles proxy_ssl_trusted_certificate and proxy_ssl_crl.
func streamProxyFile(c *compiler, l *level, d *conf.Directive) error {
	rule := &streamProxySlot.edit(l).tls
	if d.Name == "proxy_ssl_crl" {
		rule.crl = listFile(c, d)
	} else {
		rule.trusted = absolute(c.confDir, d.Args[0])
	}
	return nil
}

func streamProxyPasswordFile(c *compiler, l *level, d *conf.Directive) (err error) {
	streamProxySlot.edit(l).tls.passwords, err = readPasswords(c, d)
	return err
}

func streamProxyName(c *compiler, l *level, d *conf.Directive) error {
	value, err := c.value(d, d.Args[0])
	streamProxySlot.edit(l).name = &value
	return err
}

func streamProxyProtocols(_ *compiler, l *level, d *conf.Directive) (err error) {
	rule := &streamProxySlot.edit(l).tls
	rule.min, rule.max, err = tlsVersions(d)
	return err
}

// streamProxyALPN compiles "proxy_ssl_alpn protocol ...".
func streamProxyALPN(c *compiler, l *level, d *conf.Directive) error {
	s := streamProxySlot.edit(l)
	s.protocols = nil
	for _, text := range d.Args {
		value, err := c.value(d, text)
		if err != nil {
			return err
		}
		if literal, constant := value.Literal(); constant && len(literal) > 255 {
			return d.Errorf("\"proxy_ssl_alpn\" directive protocol too long")
		}
		s.protocols = append(s.protocols, value)
	}
	return nil
}

// streamTLSRule makes the configurations of TLS connections to upstreams.
type streamTLSRule struct {
	engine    *Engine
	base      *tls.Config
	settings  *streamProxySettings
	verifier  *certs.Verifier // nil: the certificate is not verified
	variables bool            // in the names of the certificate or the key
}

// upstreamTLS loads what is known at load.
func (s *streamProxySettings) upstreamTLS(compiler *compiler) (func(*stream.Session, string) (*tls.Config, bool), error) {
	rule := &streamTLSRule{engine: compiler.engine, settings: s, base: &tls.Config{
		InsecureSkipVerify: true, MinVersion: s.tls.min, MaxVersion: s.tls.max,
	}}
	if s.sessions {
		rule.base.ClientSessionCache = tls.NewLRUClientSessionCache(0)
	}
	if err := rule.loadCertificate(); err != nil {
		return nil, err
	}
	if err := s.tls.applyTo(rule.base); err != nil {
		return nil, err
	}
	if !s.tls.verify {
		return rule.config, nil
	}
	if s.tls.trusted == "" {
		return nil, &conf.Error{What: "no proxy_ssl_trusted_certificate for proxy_ssl_verify"}
	}
	text, _, err := certs.ReadRoots(s.tls.trusted)
	if err != nil {
		return nil, &conf.Error{What: err.Error()}
	}
	lists, err := certs.ReadRevocations(s.tls.crl)
	if err != nil {
		return nil, &conf.Error{What: err.Error()}
	}
	rule.verifier = &certs.Verifier{Lists: lists, Depth: s.tls.depth, Usage: x509.ExtKeyUsageServerAuth}
	rule.verifier.Trust(text)
	return rule.config, nil
}

// loadCertificate loads the client's certificate, if the names of its files have no variables.
func (r *streamTLSRule) loadCertificate() error {
	s := r.settings
	if s.certAt == nil || s.certAt.Args[0] == "" {
		return nil
	}
	if s.keyAt == nil {
		return &conf.Error{What: "no \"proxy_ssl_certificate_key\" is defined for certificate \"" + s.certAt.Args[0] + "\""}
	}
	cert, constant := s.cert.Literal()
	key, constantKey := s.key.Literal()
	if r.variables = !constant || !constantKey; r.variables {
		return nil
	}
	pair, err := loadPair(cert, key, s.tls.passwords, certPair{certFile{at: s.certAt}, certFile{at: s.keyAt}})
	if err != nil {
		return err
	}
	r.base.Certificates = []tls.Certificate{pair}
	return nil
}

// config returns the configuration of a session's connection to the upstream of a name.
func (r *streamTLSRule) config(session *stream.Session, name string) (*tls.Config, bool) {
	c := r.base.Clone()
	if r.settings.name != nil {
		name = r.settings.name.String(&session.Request)
	}
	if host, port := splitPort(name); port != "" {
		name = host
	}
	c.ServerName = "0.0.0.0" // an address is never sent (RFC 6066 section 3)
	if _, err := netip.ParseAddr(strings.Trim(name, "[]")); r.settings.tls.sni && err != nil && name != "" {
		c.ServerName = name
	}
	for _, value := range r.settings.protocols {
		if protocol := value.String(&session.Request); protocol != "" && len(protocol) <= 255 {
			c.NextProtos = append(c.NextProtos, protocol)
		}
	}
	if r.variables && !r.evaluateCertificate(session, c) {
		return nil, false
	}
	if r.verifier != nil {
		c.VerifyConnection = func(state tls.ConnectionState) error { return r.verify(&state, name) }
	}
	return c, true
}

// evaluateCertificate loads the certificate that the session's variables name. One without a name is none.
func (r *streamTLSRule) evaluateCertificate(session *stream.Session, c *tls.Config) bool {
	s := r.settings
	cert := value(s.cert, session)
	if cert == "" || strings.HasSuffix(cert, "/") && s.certAt.Args[0][0] == '$' {
		return true
	}
	pair, err := r.engine.cachedPair(s.tls.cache, cert, value(s.key, session), s.tls.passwords)
	if err != nil {
		session.Error(err.Error())
		return false
	}
	c.Certificates = []tls.Certificate{pair.Certificate}
	return true
}

func value(v vars.Value, s *stream.Session) string { return v.String(&s.Request) }

// verify checks an upstream's certificate.
func (r *streamTLSRule) verify(state *tls.ConnectionState, name string) error {
	if err := r.verifier.Verify(state.PeerCertificates); err != nil {
		return stream.VerifyError("upstream SSL certificate verify error: (" + err.Error() + ")")
	}
	if !certs.Names(state.PeerCertificates[0], strings.Trim(name, "[]")) {
		return stream.VerifyError("upstream SSL certificate does not match \"" + name + "\"")
	}
	return nil
}
