package ocsp

import (
	"crypto/x509"
	"encoding/asn1"
	"errors"
	"slices"
	"time"

	"golang.org/x/crypto/ocsp"
)

// skew is how much a responder's clock may be fast.
const skew = 5 * time.Minute

var (
	errSigner   = errors.New("the OCSP response is not signed by the issuer, nor by a certificate of the issuer's for that")
	errOther    = errors.New("the OCSP response is about a certificate of another issuer")
	errTime     = errors.New("the OCSP response is not valid at this time")
	errNotBasic = errors.New("there is no OCSP response in it")
)

// CheckFile returns an error if raw is no response in DER.
func CheckFile(raw []byte) error {
	var response struct {
		Status asn1.Enumerated
		Bytes  asn1.RawValue `asn1:"explicit,tag:0,optional"`
	}
	if rest, err := asn1.Unmarshal(raw, &response); err != nil || len(rest) > 0 {
		return errNotBasic
	}
	return nil
}

// Check parses a response about a certificate of the issuer's. With verify, the issuer must have signed it, or a certificate that the issuer has
// issued for this purpose. Without, its signature must be that of any certificate that it contains.
func Check(raw []byte, cert, issuer *x509.Certificate, verify bool) (*ocsp.Response, error) {
	r, err := ocsp.ParseResponseForCert(raw, cert, nil)
	if err != nil {
		return nil, err
	}
	if !about(r, cert, issuer) {
		return nil, errOther
	}
	if r.Certificate == nil {
		if err := r.CheckSignatureFrom(issuer); err != nil {
			return nil, err
		}
	} else if verify && !r.Certificate.Equal(issuer) && !delegated(r.Certificate, issuer) {
		return nil, errSigner
	}
	now := time.Now()
	if r.ThisUpdate.After(now.Add(skew)) || !r.NextUpdate.IsZero() && r.NextUpdate.Before(now) {
		return nil, errTime
	}
	return r, nil
}

// delegated reports whether an issuer lets a certificate sign responses.
func delegated(c, issuer *x509.Certificate) bool {
	now := time.Now()
	return c.CheckSignatureFrom(issuer) == nil && slices.Contains(c.ExtKeyUsage, x509.ExtKeyUsageOCSPSigning) &&
		!now.Before(c.NotBefore) && !now.After(c.NotAfter)
}
