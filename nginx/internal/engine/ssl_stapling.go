package engine

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"slices"
	"strings"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/certs"
	"github.com/culvert-go/culvert/nginx/internal/engine/ocsp"
)

// staplingRule is how a server staples OCSP responses to its certificates.
type staplingRule struct {
	on        bool
	verify    bool
	file      sslFile // ssl_stapling_file, which takes the place of a responder
	responder string  // "" is that of the certificate
}

// sslStaplingFile compiles "ssl_stapling_file file".
func sslStaplingFile(c *compiler, l *level, d *conf.Directive) error {
	sslSlot.edit(l).stapling.file = sslFile{absolute(c.confDir, d.Args[0]), d}
	return nil
}

// staple gives the certificates of a configuration the response of a file, and returns what has those of responders: nil for a
// certificate without one.
func (s *server) staple(config *tls.Config) ([]*ocsp.Stapler, error) {
	settings := sslSlot.of(s.level)
	rule := &settings.stapling
	if !rule.on {
		return nil, nil
	}
	if rule.file.name != "" {
		raw, err := os.ReadFile(rule.file.name)
		if err != nil {
			return nil, rule.file.at.Errorf("BIO_new_file(\"%s\") failed (%s)", rule.file.name, conf.Errno(err))
		}
		if err := ocsp.CheckFile(raw); err != nil {
			return nil, rule.file.at.Errorf("d2i_OCSP_RESPONSE_bio(\"%s\") failed (%s)", rule.file.name, err)
		}
		for i := range config.Certificates {
			config.Certificates[i].OCSPStaple = raw
		}
		return nil, nil
	}
	trusted, err := certs.ReadFile(settings.client.trusted)
	if err != nil {
		return nil, &conf.Error{What: err.Error()}
	}
	var list []*ocsp.Stapler
	for i := range config.Certificates {
		name := settings.commands.cert
		if name == "" {
			name = settings.certs[i].name(nil)
		}
		stapler, fault := newStapler(&config.Certificates[i], trusted, rule)
		if fault != "" {
			s.engine.logger.Warn("\"ssl_stapling\" ignored, " + fault + " \"" + name + "\"")
		} else {
			stapler.OnError = func(err error) { s.engine.logger.Error(err.Error() + ", certificate: \"" + name + "\"") }
		}
		list = append(list, stapler)
	}
	s.engine.staplers = append(s.engine.staplers, list...)
	return list, nil
}

// newStapler returns what has the response about a certificate. The fault is "" unless there can't be any.
func newStapler(pair *tls.Certificate, trusted []*x509.Certificate, rule *staplingRule) (s *ocsp.Stapler, fault string) {
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		return nil, "no certificate in"
	}
	var chain []*x509.Certificate
	for _, der := range pair.Certificate[1:] {
		if c, err := x509.ParseCertificate(der); err == nil {
			chain = append(chain, c)
		}
	}
	s = &ocsp.Stapler{Cert: leaf, Responder: rule.responder, Verify: rule.verify}
	for _, c := range slices.Concat(chain, trusted) {
		if leaf.CheckSignatureFrom(c) == nil {
			s.Issuer = c
			break
		}
	}
	if s.Issuer == nil {
		return nil, "issuer certificate not found for certificate"
	}
	if s.Responder == "" && len(leaf.OCSPServer) > 0 {
		s.Responder = leaf.OCSPServer[0]
	}
	switch {
	case s.Responder == "":
		return nil, "no OCSP responder URL in the certificate"
	case !strings.HasPrefix(s.Responder, "http://"):
		return nil, "invalid URL prefix in OCSP responder \"" + s.Responder + "\" in the certificate"
	}
	return s, ""
}

// stapled returns the certificates with the responses that are at hand.
func stapled(pairs []tls.Certificate, staplers []*ocsp.Stapler) []tls.Certificate {
	pairs = slices.Clone(pairs)
	for i, s := range staplers {
		if s != nil {
			pairs[i].OCSPStaple = s.Staple()
		}
	}
	return pairs
}
