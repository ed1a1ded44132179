package ocsp

import (
	"bytes"
	"crypto"
	_ "crypto/sha1" // of certificates' issuers, in most responses
	_ "crypto/sha256"
	_ "crypto/sha512"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"math/big"

	"golang.org/x/crypto/ocsp"
)

// certID says which certificate a part of a response is about (RFC 6960 section 4.1.1). Other issuers have certificates of the same
// serial number.
type certID struct {
	HashAlgorithm pkix.AlgorithmIdentifier
	NameHash      []byte
	KeyHash       []byte
	Serial        *big.Int
}

// about reports whether r, a response about the serial number of cert, is about a certificate of this issuer.
func about(r *ocsp.Response, cert, issuer *x509.Certificate) bool {
	var data struct {
		Version   int `asn1:"optional,default:0,explicit,tag:0"`
		Responder asn1.RawValue
		Produced  asn1.RawValue
		Responses []asn1.RawValue
	}
	if _, err := asn1.Unmarshal(r.TBSResponseData, &data); err != nil {
		return false
	}
	for _, single := range data.Responses {
		var id certID
		if _, err := asn1.Unmarshal(single.Bytes, &id); err != nil {
			return false
		}
		if id.Serial.Cmp(cert.SerialNumber) == 0 { // r has been made of the first one
			return id.of(issuer, r.IssuerHash)
		}
	}
	return false
}

// of reports whether id has the issuer's name and key, by a hash function.
func (id *certID) of(issuer *x509.Certificate, by crypto.Hash) bool {
	var key struct {
		Algorithm pkix.AlgorithmIdentifier
		Bits      asn1.BitString
	}
	if _, err := asn1.Unmarshal(issuer.RawSubjectPublicKeyInfo, &key); err != nil || !by.Available() {
		return false
	}
	return bytes.Equal(id.NameHash, sum(by, issuer.RawSubject)) && bytes.Equal(id.KeyHash, sum(by, key.Bits.RightAlign()))
}

func sum(by crypto.Hash, text []byte) []byte {
	h := by.New()
	h.Write(text)
	return h.Sum(nil)
}
