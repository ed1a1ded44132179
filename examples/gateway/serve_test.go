package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/server"
)

// started is a running server and what it has printed so far.
type started struct {
	printed, address string
}

// start runs serve in the current directory, and waits for the line with the address.
func start(t *testing.T) started {
	t.Helper()
	leaktest.Check(t)
	s := &server.Server{Addr: "127.0.0.1:0", Handler: http.NotFoundHandler()}
	out, ended := make(lines, 4), make(chan error, 1)
	go func() { ended <- serve(s, out, "cert.pem", "key.pem") }()
	t.Cleanup(func() {
		s.Close()
		if err := wiretest.Await(t, ended, "end"); err != http.ErrServerClosed {
			t.Error(err)
		}
	})
	var printed string
	for {
		line := wiretest.Await(t, out, "line")
		printed += line
		if _, rest, ok := strings.Cut(line, "listens on https://"); ok {
			address, _, _ := strings.Cut(rest, "/")
			return started{printed, address}
		}
	}
}

// served returns the certificate that the server sends.
func (s started) served(t *testing.T) *x509.Certificate {
	t.Helper()
	conn, err := tls.Dial("tcp", s.address, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0]
}

// Without files the gateway serves with a certificate for localhost, and says so and where it listens.
func TestWithoutACertificate(t *testing.T) {
	t.Chdir(t.TempDir())
	s := start(t)
	if !strings.HasPrefix(s.address, "localhost:") || !strings.Contains(s.printed, "no cert.pem and key.pem: a certificate for localhost is made") {
		t.Errorf("printed %q", s.printed)
	}
	certificate := s.served(t)
	roots := x509.NewCertPool()
	roots.AddCert(certificate)
	for _, name := range []string{"localhost", "127.0.0.1", "[::1]"} {
		if _, err := certificate.Verify(x509.VerifyOptions{DNSName: name, Roots: roots}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if files, err := os.ReadDir("."); err != nil || len(files) > 0 {
		t.Errorf("it left %v, %v", files, err)
	}
}

// A certificate that is there is served, and half of one is an error.
func TestWithACertificate(t *testing.T) {
	t.Chdir(t.TempDir())
	c, err := forLocalhost()
	if err != nil {
		t.Fatal(err)
	}
	key, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	write := func(file, kind string, der []byte) {
		if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("cert.pem", "CERTIFICATE", c.Certificate[0])
	half := &server.Server{Addr: "127.0.0.1:0"}
	if err := serve(half, make(lines, 4), "cert.pem", "key.pem"); err == nil || !strings.Contains(err.Error(), "key.pem") {
		t.Errorf("without a key: %v", err)
	}
	write("key.pem", "PRIVATE KEY", key)
	s := start(t)
	if strings.Contains(s.printed, "is made") {
		t.Errorf("printed %q", s.printed)
	}
	if got := s.served(t); string(got.Raw) != string(c.Certificate[0]) {
		t.Errorf("serves the certificate of %v, serial %v", got.Subject, got.SerialNumber)
	}
}
