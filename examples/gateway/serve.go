package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/big"
	"net"
	"os"
	"time"

	"github.com/culvert-go/culvert/server"
)

// serve is s.ListenAndServeTLS on a socket of systemd, if there is one, and with two additions for a first try: it prints the address, and
// if neither of the files exists, it serves with a certificate of its own for localhost.
func serve(s *server.Server, out io.Writer, certFile, keyFile string) error {
	l, err := listen(s.Addr)
	if err != nil {
		return err
	}
	defer l.Close()
	if missing(certFile) && missing(keyFile) {
		certificate, err := forLocalhost()
		if err != nil {
			return err
		}
		s.TLSConfig = &tls.Config{Certificates: []tls.Certificate{certificate}}
		fmt.Fprintf(out, "gateway: no %s and %s: a certificate for localhost is made, which no client trusts (curl -k)\n", certFile, keyFile)
		certFile, keyFile = "", ""
	}
	fmt.Fprintf(out, "gateway: listens on https://%s/, metrics on /metrics\n", name(l.Addr()))
	return s.ServeTLS(l, certFile, keyFile)
}

func missing(file string) bool {
	_, err := os.Stat(file)
	return errors.Is(err, fs.ErrNotExist)
}

// name returns the address as it is written in a URL on this machine.
func name(a net.Addr) string {
	if tcp, ok := a.(*net.TCPAddr); ok && (tcp.IP.IsUnspecified() || tcp.IP.IsLoopback()) {
		return fmt.Sprintf("localhost:%d", tcp.Port)
	}
	return a.String()
}

// forLocalhost makes a certificate that signs itself. Its key is in memory only.
func forLocalhost() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return tls.Certificate{}, err
	}
	now := time.Now()
	der, err := x509.CreateCertificate(rand.Reader, template(serial, now), template(serial, now), &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

func template(serial *big.Int, now time.Time) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: "localhost"},
		DNSNames:              []string{"localhost"},
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		NotBefore:             now.Add(-time.Hour), // for clocks that differ
		NotAfter:              now.AddDate(1, 0, 0),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
	}
}
