package engine

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/culvert-go/culvert/nginx/conf"
)

// tlsRule is how TLS connections to upstreams are made: the proxy_ssl_ directives except the
// name.
type tlsRule struct {
	sni      bool
	verify   bool
	depth    int
	trusted  string // files
	crl      string
	cert     string
	key      string
	min, max uint16
}

func proxySSLTrustedCertificate(c *compiler, l *level, d *conf.Directive) error {
	proxySlot.edit(l).tls.trusted = absolute(c.confDir, d.Args[0])
	return nil
}

func proxySSLCRL(c *compiler, l *level, d *conf.Directive) error {
	proxySlot.edit(l).tls.crl = listFile(c, d)
	return nil
}

func proxySSLCertificate(c *compiler, l *level, d *conf.Directive) error {
	if strings.Contains(d.Args[0], "$") {
		return d.Errorf("variables in \"%s\" are not supported by culvert yet", d.Name)
	}
	name := absolute(c.confDir, d.Args[0])
	if d.Name == "proxy_ssl_certificate_key" {
		proxySlot.edit(l).tls.key = name
	} else {
		proxySlot.edit(l).tls.cert = name
	}
	return nil
}

func proxySSLProtocols(_ *compiler, l *level, d *conf.Directive) (err error) {
	rule := &proxySlot.edit(l).tls
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
	if !rule.sni {
		c.ServerName = "0.0.0.0" // an address is never sent (RFC 6066 section 3)
	}
	if rule.cert != "" {
		if rule.key == "" {
			return nil, errors.New("no \"proxy_ssl_certificate_key\" is defined for certificate \"" + filepath.Base(rule.cert) + "\"")
		}
		at := &conf.Directive{}
		pair, err := loadPair(sslFile{rule.cert, at}, sslFile{rule.key, at})
		if err != nil {
			return nil, err
		}
		c.Certificates = []tls.Certificate{pair}
	}
	if !rule.verify {
		return c, nil
	}
	if rule.trusted == "" {
		return nil, errors.New("no proxy_ssl_trusted_certificate for proxy_ssl_verify")
	}
	text, roots, err := readRoots(rule.trusted)
	if err != nil {
		return nil, err
	}
	lists, err := readRevocations(rule.crl, text)
	if err != nil {
		return nil, err
	}
	v := chainVerifier{roots: roots, lists: lists, name: name, depth: rule.depth, usage: x509.ExtKeyUsageServerAuth}
	c.VerifyConnection = func(state tls.ConnectionState) error { return v.verify(state.PeerCertificates) }
	return c, nil
}

// readRoots reads a file of certificates.
func readRoots(name string) (text []byte, roots *x509.CertPool, err error) {
	if text, err = os.ReadFile(name); err != nil {
		return nil, nil, errors.New("cannot load certificate \"" + name + "\": " + conf.Errno(err))
	}
	roots = x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, nil, errors.New("cannot load certificate \"" + name + "\": there is none in it")
	}
	return text, roots, nil
}

// chainVerifier verifies a peer's certificates.
type chainVerifier struct {
	roots *x509.CertPool
	lists *revocations
	name  string // "" is any
	depth int    // the certificates that may be between the peer's own and the root, as OpenSSL counts (SSL_CTX_set_verify_depth)
	usage x509.ExtKeyUsage
}

func (v *chainVerifier) verify(certs []*x509.Certificate) error {
	if len(certs) == 0 {
		return errors.New("no certificate was sent")
	}
	o := x509.VerifyOptions{Roots: v.roots, DNSName: v.name, Intermediates: x509.NewCertPool(), KeyUsages: []x509.ExtKeyUsage{v.usage}}
	for _, c := range certs[1:] {
		o.Intermediates.AddCert(c)
	}
	chains, err := certs[0].Verify(o)
	if isUnknownAuthority(err) {
		return v.lists.checkUnknown(certs, err)
	}
	if err != nil {
		return err
	}
	err = errors.New("certificate chain too long")
	for _, chain := range chains {
		if len(chain)-2 > v.depth {
			continue
		}
		if err = v.lists.check(chain); err == nil {
			return nil
		}
	}
	return err
}
