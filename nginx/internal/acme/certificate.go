package acme

import (
	"bytes"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"time"
)

// Certificate is a chain and its key, both in PEM.
type Certificate struct {
	Chain, Key string
	leaf       *x509.Certificate
}

// newCertificate returns the certificate of a chain in DER. It fails unless it is one of the key and of the names now.
func newCertificate(chain [][]byte, key crypto.Signer, names []string, now time.Time) (*Certificate, error) {
	var text bytes.Buffer
	for _, der := range chain {
		if err := pem.Encode(&text, &pem.Block{Type: "CERTIFICATE", Bytes: der}); err != nil {
			return nil, err
		}
	}
	encoded, err := encodeKey(key)
	if err != nil {
		return nil, err
	}
	return parseCertificate(text.Bytes(), encoded, names, now)
}

// parseCertificate is newCertificate for texts.
func parseCertificate(chain, key []byte, names []string, now time.Time) (*Certificate, error) {
	pair, err := tls.X509KeyPair(chain, key)
	if err != nil {
		return nil, err
	}
	leaf := pair.Leaf
	for _, name := range names {
		if err := leaf.VerifyHostname(name); err != nil {
			return nil, err
		}
	}
	if now.After(leaf.NotAfter) {
		return nil, fmt.Errorf("it has expired at %s", leaf.NotAfter)
	}
	return &Certificate{Chain: string(chain), Key: string(key), leaf: leaf}, nil
}

// text returns the key and the chain, as they are kept in a file.
func (c *Certificate) text() []byte { return []byte(c.Key + c.Chain) }

// renewal returns when the certificate should be renewed: when two thirds of its life are over.
func (c *Certificate) renewal() time.Time {
	return c.leaf.NotBefore.Add(c.life() * 2 / 3)
}

func (c *Certificate) life() time.Duration { return c.leaf.NotAfter.Sub(c.leaf.NotBefore) }
