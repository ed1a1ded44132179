package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"time"
)

// certificateAuthority signs certificates by name: that of "stranger" is signed by an authority that is not
// trusted.
type certificateAuthority struct {
	cert  *x509.Certificate
	key   *ecdsa.PrivateKey
	pairs map[string]tls.Certificate
	files map[string]string // NAME.pem and NAME.key, and ca.pem
}

var authority = func() *certificateAuthority {
	a := &certificateAuthority{pairs: map[string]tls.Certificate{}, files: map[string]string{}}
	a.cert, a.key = signed("authority", nil, nil)
	a.files["ca.pem"] = encode("CERTIFICATE", a.cert.Raw)
	for _, name := range []string{"client.example", "upstream.example", "first.example"} {
		a.add(name, a.cert, a.key)
	}
	a.add("stranger", nil, nil)
	return a
}()

func (a *certificateAuthority) add(name string, parent *x509.Certificate, by *ecdsa.PrivateKey) {
	cert, key := signed(name, parent, by)
	a.pairs[name] = tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		panic(err)
	}
	a.files[name+".pem"], a.files[name+".key"] = encode("CERTIFICATE", cert.Raw), encode("EC PRIVATE KEY", der)
	//lint:ignore SA1019 such keys are what ssl_password_file is for
	encrypted, err := x509.EncryptPEMBlock(rand.Reader, "EC PRIVATE KEY", der, []byte("secret"), x509.PEMCipherAES256)
	if err != nil {
		panic(err)
	}
	a.files[name+".encrypted"], a.files["passwords"] = string(pem.EncodeToMemory(encrypted)), "wrong\nsecret\n"
}

func (a *certificateAuthority) pair(name string) tls.Certificate { return a.pairs[name] }

// signed makes a certificate; one without a parent signs itself.
func signed(name string, parent *x509.Certificate, by *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(77), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: parent == nil, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if parent == nil {
		parent, by = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, by)
	if err != nil {
		panic(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		panic(err)
	}
	return cert, key
}

// upstreamTLS is the configuration of the upstream that speaks TLS.
func upstreamTLS() *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{authority.pair("upstream.example")}, ClientAuth: tls.RequestClientCert}
}
