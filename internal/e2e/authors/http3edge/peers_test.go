package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/quic-go/quic-go/http3"
)

// files are those of a certificate for localhost and 127.0.0.1 that is its own authority.
type files struct {
	cert, key string
	pair      tls.Certificate
	roots     *x509.CertPool
}

func certificate(t *testing.T) files {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	f := files{cert: filepath.Join(dir, "cert.pem"), key: filepath.Join(dir, "key.pem"), roots: x509.NewCertPool()}
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
	if err := errors.Join(os.WriteFile(f.cert, certPEM, 0o600), os.WriteFile(f.key, keyPEM, 0o600)); err != nil {
		t.Fatal(err)
	}
	f.roots.AppendCertsFromPEM(certPEM)
	if f.pair, err = tls.X509KeyPair(certPEM, keyPEM); err != nil {
		t.Fatal(err)
	}
	return f
}

// startHTTP3 starts a target that speaks HTTP/3.
func startHTTP3(t *testing.T, f files, h http.Handler) (addr string) {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http3.Server{Handler: h, TLSConfig: http3.ConfigureTLSConfig(&tls.Config{Certificates: []tls.Certificate{f.pair}})}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = s.Serve(conn)
	}()
	t.Cleanup(func() {
		_ = s.Close()
		<-ended
		conn.Close()
	})
	return conn.LocalAddr().String()
}

// edgeUnderTest is an edge that serves.
type edgeUnderTest struct {
	addr, metrics string
	files         files
	shutdown      context.CancelFunc
	served        chan error // receives the error of Serve
}

func serve(t *testing.T, f files, c Config) *edgeUnderTest {
	t.Helper()
	c.Cert, c.Key, c.Metrics = f.cert, f.key, "127.0.0.1:0"
	edge, err := New(c, slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	c.Listen = "127.0.0.1:0"
	var l Listeners
	for range 100 { // until a port is free for both
		if l, err = Listen(c); err == nil {
			break
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, shutdown := context.WithCancel(context.Background())
	e := &edgeUnderTest{addr: l.TCP.Addr().String(), metrics: l.Metrics.Addr().String(), files: f, shutdown: shutdown, served: make(chan error, 1)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		e.served <- edge.Serve(ctx, l)
	}()
	t.Cleanup(func() {
		shutdown()
		<-ended
	})
	return e
}

// client returns a client of one protocol: 1, 2 or 3.
func (e *edgeUnderTest) client(t *testing.T, protocol int) *http.Client {
	config := &tls.Config{RootCAs: e.files.roots}
	if protocol == 3 {
		transport := &http3.Transport{TLSClientConfig: config, DisableCompression: true}
		t.Cleanup(func() { _ = transport.Close() })
		return &http.Client{Transport: transport}
	}
	transport := &http.Transport{TLSClientConfig: config, Protocols: new(http.Protocols), DisableCompression: true}
	transport.Protocols.SetHTTP1(protocol == 1)
	transport.Protocols.SetHTTP2(protocol == 2)
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// get sends a GET with header fields, as names and values in turn.
func (e *edgeUnderTest) get(t *testing.T, client *http.Client, path string, fields ...string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+e.addr+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(fields); i += 2 {
		r.Header.Set(fields[i], fields[i+1])
	}
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

func content(t *testing.T, resp *http.Response) string {
	t.Helper()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}
