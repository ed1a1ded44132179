package vars

import (
	"crypto/sha1"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// The variables of a client's certificate; without one they are empty, but for
// $ssl_client_verify on an encrypted connection.
var clientCertificateVariables = map[string]Getter{
	"ssl_client_cert":         ofCertificate(func(c *x509.Certificate) string { return strings.ReplaceAll(pemOf(c), "\n", "\n\t") }),
	"ssl_client_escaped_cert": ofCertificate(func(c *x509.Certificate) string { return escapeAll(pemOf(c) + "\n") }),
	"ssl_client_fingerprint":  ofCertificate(fingerprint),
	"ssl_client_i_dn":         ofCertificate(func(c *x509.Certificate) string { return c.Issuer.String() }),
	"ssl_client_i_dn_legacy":  ofCertificate(func(c *x509.Certificate) string { return legacyName(c.RawIssuer) }),
	"ssl_client_raw_cert":     ofCertificate(func(c *x509.Certificate) string { return pemOf(c) + "\n" }),
	"ssl_client_s_dn":         ofCertificate(func(c *x509.Certificate) string { return c.Subject.String() }),
	"ssl_client_s_dn_legacy":  ofCertificate(func(c *x509.Certificate) string { return legacyName(c.RawSubject) }),
	"ssl_client_serial":       ofCertificate(serial),
	"ssl_client_v_end":        ofCertificate(func(c *x509.Certificate) string { return certificateTime(c.NotAfter) }),
	"ssl_client_v_remain":     ofCertificate(remain),
	"ssl_client_v_start":      ofCertificate(func(c *x509.Certificate) string { return certificateTime(c.NotBefore) }),
	"ssl_client_verify":       nonEmpty(clientVerify),
}

func ofCertificate(get func(*x509.Certificate) string) Getter {
	return nonEmpty(func(r *Request) string {
		if r.tls() == nil || len(r.tls().PeerCertificates) == 0 {
			return ""
		}
		return get(r.tls().PeerCertificates[0])
	})
}

func pemOf(c *x509.Certificate) string {
	return strings.TrimSuffix(string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})), "\n")
}

// escapeAll escapes as encodeURIComponent does.
func escapeAll(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }

func fingerprint(c *x509.Certificate) string {
	sum := sha1.Sum(c.Raw)
	return hex.EncodeToString(sum[:])
}

func serial(c *x509.Certificate) string {
	text := strings.ToUpper(hex.EncodeToString(c.SerialNumber.Bytes()))
	if text == "" {
		return "00"
	}
	return text
}

func certificateTime(t time.Time) string { return t.UTC().Format("Jan _2 15:04:05 2006 GMT") }

func remain(c *x509.Certificate) string {
	return strconv.Itoa(max(0, int(time.Until(c.NotAfter)/(24*time.Hour))))
}

func clientVerify(r *Request) string {
	switch {
	case r.tls() == nil:
		return ""
	case len(r.tls().PeerCertificates) == 0:
		return "NONE"
	case !r.ClientVerified:
		return "FAILED:not verified"
	case r.ClientError != nil:
		return fmt.Sprintf("FAILED:%v", r.ClientError)
	}
	return "SUCCESS"
}
