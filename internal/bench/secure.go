package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"time"
)

// secureSuffix is that of the names of peers that speak TLS with their clients.
const secureSuffix = ", TLS"

// selfSigned is a server's configuration. It fails only without random numbers.
func selfSigned() *tls.Config {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(24 * time.Hour)}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		panic(err)
	}
	return &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{certificate}, PrivateKey: key}},
		NextProtos:   []string{"http/1.1"},
	}
}

// anyServer is the configuration of a client that measures, and has no secrets.
func anyServer() *tls.Config {
	return &tls.Config{InsecureSkipVerify: true}
}
