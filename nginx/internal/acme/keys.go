package acme

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
)

// KeyType is the type of a key that is made, as "ecdsa:256".
type KeyType string

// DefaultKey is the type of keys that a configuration says nothing of.
const DefaultKey KeyType = "ecdsa:256"

// ParseKeyType returns the type that a configuration names, and whether it is one.
func ParseKeyType(s string) (KeyType, bool) {
	switch s {
	case "ecdsa":
		return DefaultKey, true
	case "rsa":
		return "rsa:2048", true
	case "ecdsa:256", "ecdsa:384", "ecdsa:521", "rsa:2048", "rsa:3072", "rsa:4096":
		return KeyType(s), true
	}
	return "", false
}

// generate makes a key.
func (k KeyType) generate() (crypto.Signer, error) {
	switch k {
	case "", DefaultKey:
		return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case "ecdsa:384":
		return ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	case "ecdsa:521":
		return ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
	case "rsa:2048":
		return rsa.GenerateKey(rand.Reader, 2048)
	case "rsa:3072":
		return rsa.GenerateKey(rand.Reader, 3072)
	case "rsa:4096":
		return rsa.GenerateKey(rand.Reader, 4096)
	}
	return nil, fmt.Errorf("unknown type of key %q", string(k))
}

// encodeKey returns a key in PEM.
func encodeKey(key crypto.Signer) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

// ParseKey returns the first key in a text in PEM.
func ParseKey(text []byte) (crypto.Signer, error) {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		var key any
		var err error
		switch block.Type {
		case "PRIVATE KEY":
			key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
		case "EC PRIVATE KEY":
			key, err = x509.ParseECPrivateKey(block.Bytes)
		case "RSA PRIVATE KEY":
			key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
		default:
			continue
		}
		if err != nil {
			return nil, err
		}
		if signer, ok := key.(crypto.Signer); ok {
			return signer, nil
		}
		return nil, errors.New("the key can't sign")
	}
	return nil, errors.New("no key in PEM")
}
