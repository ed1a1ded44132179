package engine

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"path/filepath"
	"strings"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/certs"
)

// tlsRule is how TLS connections to upstreams are made: the proxy_ssl_ directives except the
// name and the certificate.
type tlsRule struct {
	sni       bool
	verify    bool
	sessions  bool // are resumed
	depth     int
	trusted   string // files
	crl       string
	passwords string       // a line each
	cache     *certs.Cache // of certificates with variables; nil: the engine's
	min, max  uint16
	ciphers   string      // a list of OpenSSL; "" is Go's choice
	commands  sslCommands // proxy_ssl_conf_command
}

func (f *family) sslTrustedCertificate(c *compiler, l *level, d *conf.Directive) error {
	f.slot.edit(l).tls.trusted = absolute(c.confDir, d.Args[0])
	return nil
}

func (f *family) sslPasswordFile(c *compiler, l *level, d *conf.Directive) (err error) {
	f.slot.edit(l).tls.passwords, err = readPasswords(c, d)
	return err
}

func (f *family) sslCRL(c *compiler, l *level, d *conf.Directive) error {
	f.slot.edit(l).tls.crl = listFile(c, d)
	return nil
}

func (f *family) sslCertificate(c *compiler, l *level, d *conf.Directive) error {
	file, err := newCertFile(c, d)
	if s := f.slot.edit(l); strings.HasSuffix(d.Name, "_key") {
		s.sslCert.key = file
	} else {
		s.sslCert.cert = file
	}
	return err
}

func (f *family) sslProtocols(_ *compiler, l *level, d *conf.Directive) (err error) {
	rule := &f.slot.edit(l).tls
	rule.min, rule.max, err = tlsVersions(d)
	return err
}

// upstreamTLS returns the configuration for a key. As in nginx, by default nothing is verified
// and no name is sent.
func (e *Engine) upstreamTLS(key transportKey) (*tls.Config, error) {
	rule := key.tls
	name, _ := splitPort(key.name)
	name = strings.Trim(name, "[]")
	c := &tls.Config{InsecureSkipVerify: true, MinVersion: rule.min, MaxVersion: rule.max, ServerName: name}
	c.SessionTicketsDisabled = !rule.sessions
	if !rule.sni {
		c.ServerName = "0.0.0.0" // an address is never sent (RFC 6066 section 3)
	}
	if key.cert != "" {
		if key.key == "" {
			return nil, errors.New("no \"proxy_ssl_certificate_key\" is defined for certificate \"" + filepath.Base(key.cert) + "\"")
		}
		pair, err := e.cachedPair(rule.cache, key.cert, key.key, rule.passwords)
		if err != nil {
			return nil, err
		}
		c.Certificates = []tls.Certificate{pair.Certificate}
	}
	if err := rule.applyTo(c); err != nil || !rule.verify {
		return c, err
	}
	if rule.trusted == "" {
		return nil, errors.New("no proxy_ssl_trusted_certificate for proxy_ssl_verify")
	}
	text, _, err := certs.ReadRoots(rule.trusted)
	if err != nil {
		return nil, err
	}
	lists, err := certs.ReadRevocations(rule.crl)
	if err != nil {
		return nil, err
	}
	v := certs.Verifier{Lists: lists, Name: name, Depth: rule.depth, Usage: x509.ExtKeyUsageServerAuth}
	v.Trust(text)
	c.VerifyConnection = func(state tls.ConnectionState) error { return v.Verify(state.PeerCertificates) }
	return c, nil
}
