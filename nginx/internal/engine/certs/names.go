package certs

import (
	"crypto/x509"
	"strings"
)

// Names reports whether a certificate is for a host: one of its alternative names is, or, if it has none, its common name, as in
// OpenSSL (X509_check_host).
func Names(c *x509.Certificate, host string) bool {
	if len(c.DNSNames)+len(c.IPAddresses)+len(c.EmailAddresses)+len(c.URIs) > 0 {
		return c.VerifyHostname(host) == nil
	}
	name := strings.ToLower(c.Subject.CommonName)
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if suffix, wildcard := strings.CutPrefix(name, "*"); wildcard {
		label, rest, ok := strings.Cut(host, ".")
		return ok && label != "" && "."+rest == suffix && strings.Count(suffix, ".") > 1
	}
	return name != "" && name == host
}
