package certs

import (
	"bytes"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"math/big"
	"time"
)

// certificateList is a list of version 1, which has no extensions (RFC 5280 section 5.1). crypto/x509 parses version 2 alone;
// "openssl ca" writes version 1 unless it is configured otherwise.
type certificateList struct {
	TBS       tbsCertificateList
	Algorithm pkix.AlgorithmIdentifier
	Signature asn1.BitString
}

type tbsCertificateList struct {
	Raw        asn1.RawContent
	Algorithm  pkix.AlgorithmIdentifier
	Issuer     asn1.RawValue
	ThisUpdate time.Time
	NextUpdate time.Time           `asn1:"optional"`
	Revoked    []revokedOfVersion1 `asn1:"optional"`
}

type revokedOfVersion1 struct {
	Serial *big.Int
	When   time.Time
}

// algorithms are those that lists are signed with.
var algorithms = []struct {
	oid asn1.ObjectIdentifier
	is  x509.SignatureAlgorithm
}{
	{asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 1, 11}, x509.SHA256WithRSA},
	{asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 1, 12}, x509.SHA384WithRSA},
	{asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 1, 13}, x509.SHA512WithRSA},
	{asn1.ObjectIdentifier{1, 2, 840, 10045, 4, 3, 2}, x509.ECDSAWithSHA256},
	{asn1.ObjectIdentifier{1, 2, 840, 10045, 4, 3, 3}, x509.ECDSAWithSHA384},
	{asn1.ObjectIdentifier{1, 2, 840, 10045, 4, 3, 4}, x509.ECDSAWithSHA512},
	{asn1.ObjectIdentifier{1, 3, 101, 112}, x509.PureEd25519},
}

var errNotVersion1 = errors.New("it is no revocation list")

// parseList parses a revocation list of either version.
func parseList(der []byte) (*x509.RevocationList, error) {
	list, err := x509.ParseRevocationList(der)
	if err == nil {
		return list, nil
	}
	if first, firstErr := parseVersion1(der); firstErr == nil {
		return first, nil
	}
	return nil, err
}

func parseVersion1(der []byte) (*x509.RevocationList, error) {
	var list certificateList
	rest, err := asn1.Unmarshal(der, &list)
	if err != nil {
		return nil, err
	}
	if len(rest) > 0 || !list.Algorithm.Algorithm.Equal(list.TBS.Algorithm.Algorithm) ||
		!bytes.Equal(list.Algorithm.Parameters.FullBytes, list.TBS.Algorithm.Parameters.FullBytes) {
		return nil, errNotVersion1
	}
	r := &x509.RevocationList{
		Raw: der, RawTBSRevocationList: list.TBS.Raw, RawIssuer: list.TBS.Issuer.FullBytes, Signature: list.Signature.RightAlign(),
		ThisUpdate: list.TBS.ThisUpdate, NextUpdate: list.TBS.NextUpdate,
	}
	for _, a := range algorithms {
		if a.oid.Equal(list.Algorithm.Algorithm) {
			r.SignatureAlgorithm = a.is
		}
	}
	for _, entry := range list.TBS.Revoked {
		r.RevokedCertificateEntries = append(r.RevokedCertificateEntries, x509.RevocationListEntry{SerialNumber: entry.Serial, RevocationTime: entry.When})
	}
	return r, nil
}
