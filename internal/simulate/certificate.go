package simulate

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"sync"
	"time"
)

// secureAddr is the gateway's address for TLS.
const secureAddr = "192.0.2.1:443"

// certificate is the certificate of all gateways. Its signatures have a fixed length, so that the bytes of a handshake
// are cut at the same places in each run of a seed.
var certificate = sync.OnceValue(func() tls.Certificate {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"gateway.test"},
		NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<33, 0)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		panic(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}
})

// serverTLS is the TLS configuration of the gateway's server. It is cheap, since the handshake is not under test.
func serverTLS() *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{certificate()}, SessionTicketsDisabled: true,
		CurvePreferences: []tls.CurveID{tls.X25519}, MinVersion: tls.VersionTLS13}
}

// clientTLS returns the TLS configuration of a client that speaks protocol, "h2" or "http/1.1".
func clientTLS(protocol string) *tls.Config {
	return &tls.Config{InsecureSkipVerify: true, ServerName: "gateway.test", NextProtos: []string{protocol},
		CurvePreferences: []tls.CurveID{tls.X25519}, MinVersion: tls.VersionTLS13}
}
