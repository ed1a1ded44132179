package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"testing"
)

// A peer that sends many certificates of one name does not choose how many signatures are checked.
func TestSignatureChecksAreBounded(t *testing.T) {
	of := func() *x509.Certificate {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		block, _ := pem.Decode(pairOf(t, key, key.Public(), "a"))
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		return cert
	}
	signer, other := of(), of()
	sent := []*x509.Certificate{other, other, signer}
	for _, c := range []struct {
		left, after int
		found       bool
	}{{5, 2, true}, {3, 0, true}, {2, -1, false}} {
		left := c.left
		if got := issuerIn(sent, signer, &left); (got == signer) != c.found || left != c.after {
			t.Errorf("with %d checks: found %v, %d left", c.left, got != nil, left)
		}
	}
	if v := (&Verifier{Others: []*x509.Certificate{other}}); v.endsWithOther([]*x509.Certificate{signer}) || !v.endsWithOther([]*x509.Certificate{other}) {
		t.Error("a chain that ends with a trusted certificate is not told from another one")
	}
}
