package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
)

// The file is read again when it changes. One with an error changes nothing, and tunnels continue by the former rules.
func TestReload(t *testing.T) {
	leaktest.Check(t)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	listen, target := wiretest.Free(t), wiretest.Serve(t, http.HandlerFunc(echo))
	rules := write(t, "rules.yaml", "listen: "+listen+"\nproxy: {/api: {target: 'http://TARGET', ws: true}}", target)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out, ended := make(lines, 64), make(chan error, 1)
	go func() { ended <- run(ctx, []string{"-c", rules}, out) }()
	awaitLine(t, out, "Ctrl-C")
	socket, _, err := websocket.DefaultDialer.Dial("ws://"+listen+"/api/socket", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	replace := func(text string) {
		if err := os.WriteFile(rules, []byte(strings.ReplaceAll(text, "TARGET", target)), 0o644); err != nil {
			t.Fatal(err)
		}
	}

	replace("proxy: {/api: {target: 'http://TARGET', wss: true}}")
	awaitLine(t, out, "the rules remain as they were: "+rules+":1: proxy.wss: there is no such field")
	if resp, body := get(t, "http://"+listen+"/api/x"); resp.StatusCode != 200 {
		t.Errorf("with an error in the file: %s %s", resp.Status, body)
	}
	replace("proxy: {/new: 'http://TARGET'}")
	awaitLine(t, out, "listen and https remain as they were") // which the file does not have any more
	awaitLine(t, out, "new rules of "+rules)
	for path, want := range map[string]int{"/new/x": 200, "/api/x": 404} {
		if resp, body := get(t, "http://"+listen+path); resp.StatusCode != want {
			t.Errorf("%s by the new rules: %s %s", path, resp.Status, body)
		}
	}
	if err := socket.WriteMessage(websocket.TextMessage, []byte("still there")); err != nil {
		t.Error(err)
	}
	if _, message, err := socket.ReadMessage(); string(message) != "still there" {
		t.Errorf("the tunnel of before: %q, %v", message, err)
	}
	cancel()
	if err := wiretest.Await(t, ended, "end"); err != nil {
		t.Error(err)
	}
}

// awaitLine waits for a line that contains text.
func awaitLine(t *testing.T, out lines, text string) {
	t.Helper()
	for !strings.Contains(wiretest.Await(t, out, text), text) {
	}
}

// With https it listens with the certificate of the files.
func TestHTTPS(t *testing.T) {
	leaktest.Check(t)
	listen, target := wiretest.Free(t), wiretest.Serve(t, http.HandlerFunc(echo))
	cert, key, pool := certificateFiles(t)
	rules := write(t, "rules.yaml", fmt.Sprintf("listen: %s\nhttps: {cert: %s, key: %s}\nproxy: {/api: 'http://TARGET'}", listen, cert, key), target)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out, ended := make(lines, 64), make(chan error, 1)
	go func() { ended <- run(ctx, []string{"-c", rules}, out) }()
	awaitLine(t, out, "devproxy on https://"+listen)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: "localhost"}}}
	defer client.CloseIdleConnections()
	resp, err := client.Get("https://" + listen + "/api/x")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, _ := io.ReadAll(resp.Body); !strings.HasPrefix(string(body), "received GET /api/x") {
		t.Errorf("response %q", body)
	}
	cancel()
	if err := wiretest.Await(t, ended, "end"); err != nil {
		t.Error(err)
	}
	missing := write(t, "missing.yaml", fmt.Sprintf("listen: %s\nhttps: {cert: %s.none, key: %s}\nproxy: {/api: 'http://TARGET'}", wiretest.Free(t), cert, key), target)
	if err := run(t.Context(), []string{"-c", missing}, io.Discard); err == nil || !strings.Contains(err.Error(), cert+".none") {
		t.Errorf("a missing file: %v", err)
	}
}

// certificateFiles creates a certificate for localhost, and a pool that trusts it.
func certificateFiles(t *testing.T) (cert, key string, pool *x509.CertPool) {
	t.Helper()
	secret, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &secret.PublicKey, secret)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	pool = x509.NewCertPool()
	pool.AddCert(parsed)
	dir := t.TempDir()
	for name, block := range map[string]*pem.Block{"cert": {Type: "CERTIFICATE", Bytes: der}, "key": {Type: "PRIVATE KEY", Bytes: pkcs8}} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "cert"), filepath.Join(dir, "key"), pool
}
