// Package certs verifies chains of certificates as nginx's OpenSSL does: roots, revocation lists,
// the depth of a chain.
package certs

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net"
	"os"
	"slices"

	"github.com/culvert-go/culvert/nginx/conf"
)

// ReadRoots reads a file of certificates.
func ReadRoots(name string) (text []byte, roots *x509.CertPool, err error) {
	if text, err = os.ReadFile(name); err != nil {
		return nil, nil, errors.New("cannot load certificate \"" + name + "\": " + conf.Errno(err))
	}
	text = trusted(text)
	roots = x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, nil, errors.New("cannot load certificate \"" + name + "\": there is none in it")
	}
	return text, roots, nil
}

// ReadFile returns the certificates of a file, none for the name "". Those that can't be parsed are left out.
func ReadFile(name string) ([]*x509.Certificate, error) {
	if name == "" {
		return nil, nil
	}
	text, _, err := ReadRoots(name)
	if err != nil {
		return nil, err
	}
	return parse(text), nil
}

// parse returns the certificates of a text in PEM that can be parsed.
func parse(text []byte) (list []*x509.Certificate) {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if c, err := x509.ParseCertificate(block.Bytes); err == nil {
			list = append(list, c)
		}
	}
	return list
}

// Verifier verifies a peer's certificates.
type Verifier struct {
	Roots *x509.CertPool
	// Others are certificates that may be between a root and the peer's. As with OpenSSL a chain does not end with one, whose own issuer
	// is not known, even if it is trusted.
	Others []*x509.Certificate
	Lists  *Revocations // nil for none
	Name   string       // "" is any
	Depth  int          // the certificates that may be between the peer's own and the root, as OpenSSL counts (SSL_CTX_set_verify_depth)
	Usage  x509.ExtKeyUsage
}

// Trust adds the certificates of a text in PEM to those that chains may end with, or lead over. Those that can't be parsed are left out.
func (v *Verifier) Trust(text []byte) {
	if v.Roots == nil {
		v.Roots = x509.NewCertPool()
	}
	for _, c := range parse(text) {
		if bytes.Equal(c.RawSubject, c.RawIssuer) {
			v.Roots.AddCert(c)
		} else {
			v.Others = append(v.Others, c)
		}
	}
}

// Verify verifies the certificates that the peer has sent, its own first.
func (v *Verifier) Verify(certs []*x509.Certificate) error {
	_, err := v.Chain(certs)
	return err
}

// Chain is Verify, and returns the chain that it has found, which ends with a root.
func (v *Verifier) Chain(certs []*x509.Certificate) ([]*x509.Certificate, error) {
	if len(certs) == 0 {
		return nil, errors.New("no certificate was sent")
	}
	o := x509.VerifyOptions{Roots: v.Roots, Intermediates: x509.NewCertPool(), KeyUsages: []x509.ExtKeyUsage{v.Usage}}
	for _, c := range slices.Concat(certs[1:], v.Others) {
		o.Intermediates.AddCert(c)
	}
	if err := v.verifyName(certs[0]); err != nil {
		return nil, err
	}
	chains, err := certs[0].Verify(o)
	if IsUnknownAuthority(err) {
		if v.endsWithOther(certs) {
			return nil, errNoIssuer
		}
		return nil, v.Lists.checkUnknown(certs, err)
	}
	if err != nil {
		return nil, err
	}
	err = errors.New("certificate chain too long")
	for _, chain := range chains {
		if len(chain)-2 > v.Depth {
			continue
		}
		if err = v.Lists.check(chain); err == nil {
			return chain, nil
		}
	}
	return nil, err
}

// endsWithOther reports whether a chain without a root ends with a trusted certificate, which nginx does not count as one of an unknown
// issuer.
func (v *Verifier) endsWithOther(sent []*x509.Certificate) bool {
	if len(v.Others) == 0 {
		return false
	}
	c, all, checks := sent[0], slices.Concat(sent[1:], v.Others), maxChecks
	for issuer := c; issuer != nil; issuer = issuerIn(all, c, &checks) {
		if c = issuer; selfIssued(c) {
			break
		}
	}
	return slices.ContainsFunc(v.Others, c.Equal)
}

// verifyName verifies the peer's name. As in nginx (X509_check_host), the common name counts if there is no alternative name of the DNS.
func (v *Verifier) verifyName(c *x509.Certificate) error {
	if v.Name == "" {
		return nil
	}
	if len(c.DNSNames) == 0 && len(c.IPAddresses) == 0 && net.ParseIP(v.Name) == nil {
		c = &x509.Certificate{DNSNames: []string{c.Subject.CommonName}}
	}
	return c.VerifyHostname(v.Name)
}

// IsUnknownAuthority reports whether a chain leads to no known root.
func IsUnknownAuthority(err error) bool {
	var unknown x509.UnknownAuthorityError
	return errors.As(err, &unknown)
}
