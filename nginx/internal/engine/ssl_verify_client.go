package engine

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/http"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/certs"
)

// clientCertRule is what a server requires of its clients' certificates.
type clientCertRule struct {
	verify  string // "on", "optional", "optional_no_ca"; "" is off
	depth   int
	accept  string  // ssl_client_certificate: its names are sent to clients
	trusted string  // ssl_trusted_certificate: these are not
	crl     sslFile // ssl_crl
	ocsp    ocspRule
	chains  *certs.Verifier // of these files
}

// Statuses of nginx's own, which its error pages may name.
const (
	statusCertificateError = 495
	statusNoCertificate    = 496
	statusCleartext        = 497
)

// verifyModes are those of ssl_verify_client.
var verifyModes = map[string]string{"on": "on", "optional": "optional", "optional_no_ca": "optional_no_ca", "off": ""}

func sslClientCertificate(c *compiler, l *level, d *conf.Directive) error {
	sslSlot.edit(l).client.accept = absolute(c.confDir, d.Args[0])
	return nil
}

func sslTrustedCertificate(c *compiler, l *level, d *conf.Directive) error {
	sslSlot.edit(l).client.trusted = absolute(c.confDir, d.Args[0])
	return nil
}

// sslCRL compiles "ssl_crl file".
func sslCRL(c *compiler, l *level, d *conf.Directive) error {
	sslSlot.edit(l).client.crl = sslFile{listFile(c, d), d}
	return nil
}

// requestCertificates makes a handshake request a certificate. It is verified when a request has
// been received, so that the client gets an error page instead of a failed handshake.
func (s *server) requestCertificates(config *tls.Config) error {
	rule := &sslSlot.edit(s.level).client
	if rule.verify == "" {
		_, err := rule.revocations() // nginx reads the file even so
		return err
	}
	if rule.accept == "" && rule.trusted == "" && rule.verify != "optional_no_ca" {
		return &conf.Error{What: "no ssl_client_certificate or ssl_trusted_certificate for ssl_verify_client"}
	}
	if rule.ocsp.on && rule.verify == "optional_no_ca" {
		return rule.ocsp.at.Errorf("\"ssl_ocsp\" is incompatible with \"ssl_verify_client optional_no_ca\"")
	}
	config.ClientAuth = tls.RequestClientCert
	rule.chains = &certs.Verifier{Roots: x509.NewCertPool(), Depth: rule.depth, Usage: x509.ExtKeyUsageClientAuth}
	for _, name := range []string{rule.accept, rule.trusted} {
		if name == "" {
			continue
		}
		text, roots, err := certs.ReadRoots(name)
		if err != nil {
			return &conf.Error{What: err.Error()}
		}
		rule.chains.Trust(text)
		if name == rule.accept {
			config.ClientCAs = roots
		}
	}
	lists, err := rule.revocations()
	rule.chains.Lists = lists
	return err
}

// revocations reads the file of ssl_crl.
func (r *clientCertRule) revocations() (*certs.Revocations, error) {
	lists, err := certs.ReadRevocations(r.crl.name)
	if err != nil {
		return nil, r.crl.at.Errorf("%s", err)
	}
	return lists, nil
}

// verifyClient checks the client's certificate and returns 0 if the request is allowed.
func verifyClient(x *exchange) int {
	state := x.HTTP.TLS
	rule := &sslSlot.of(x.server.level).client
	if rule.verify == "" {
		return 0
	}
	if state == nil {
		if x.socket.ssl && rule.verify == "on" { // a program serves the handler over cleartext, or ends TLS by itself
			x.logAt(levelInfo, "client sent no required SSL certificate", "")
			return statusNoCertificate
		}
		return 0
	}
	if s := serverBySNI(x); s != x.server {
		x.logAt(levelInfo, "client attempted to request the server name different from the one that was negotiated", "")
		if x.HTTP.ProtoMajor == 1 { // for HTTP/2 it would end all streams of the connection
			x.w.Header().Set("Connection", "close")
		}
		return http.StatusMisdirectedRequest
	}
	err := x.checkClient()
	switch {
	case len(state.PeerCertificates) == 0:
		if rule.verify == "on" {
			x.logAt(levelInfo, "client sent no required SSL certificate", "")
			return statusNoCertificate
		}
	case err != nil && !(rule.verify == "optional_no_ca" && certs.IsUnknownAuthority(err)):
		x.logAt(levelInfo, "client SSL certificate verify error: "+err.Error(), "")
		return statusCertificateError
	}
	return 0
}

// checkClient verifies the client's certificate, for the variables about it too.
func (x *exchange) checkClient() error {
	rule := &sslSlot.of(x.server.level).client
	if x.HTTP.TLS == nil || rule.verify == "" {
		return nil
	}
	err := x.Conn.VerifyClient(rule, func() error {
		return rule.check(x.HTTP.Context(), x.HTTP.TLS.PeerCertificates, x.logError)
	})
	x.ClientVerified, x.ClientError = true, err
	return err
}

// check verifies a client's certificates, and whether they are revoked.
func (r *clientCertRule) check(ctx context.Context, sent []*x509.Certificate, logError func(string)) error {
	chain, err := r.chains.Chain(sent)
	if err != nil || !r.ocsp.on {
		return err
	}
	return r.ocsp.checker().Check(ctx, chain, logError)
}

// serverBySNI returns the server that the client has named in TLS.
func serverBySNI(x *exchange) *server {
	found, err := x.socket.host(localIP(x.HTTP)).choose(hostName(x.HTTP.TLS.ServerName))
	if err != nil {
		x.Fail(err)
	}
	return found.To
}
