// Package kubetest starts etcd and a kube-apiserver for tests, from the program in internal/e2e/kube.
package kubetest

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"
)

// AdminToken is that of a user who may do everything.
const AdminToken = "culvert-admin"

// APIServer is a kube-apiserver on loopback.
type APIServer struct {
	Addr string
	CA   string // the file of its certificate, which is for the name kubernetes
}

// Start starts etcd and a kube-apiserver, which end with the test.
func Start(t *testing.T) APIServer {
	t.Helper()
	program, err := program()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	etcd, peer, secure := freePort(t), freePort(t), freePort(t)
	etcdURL, peerURL := fmt.Sprintf("http://127.0.0.1:%d", etcd), fmt.Sprintf("http://127.0.0.1:%d", peer)
	start(t, program, "etcd", "--data-dir", filepath.Join(dir, "etcd"), "--unsafe-no-fsync", "--log-level=error",
		"--listen-client-urls", etcdURL, "--advertise-client-urls", etcdURL,
		"--listen-peer-urls", peerURL, "--initial-advertise-peer-urls", peerURL, "--initial-cluster", "default="+peerURL)
	key, tokens, certs := filepath.Join(dir, "key.pem"), filepath.Join(dir, "tokens"), filepath.Join(dir, "certs")
	write(t, key, rsaKey(t))
	write(t, tokens, []byte(AdminToken+",admin,1,system:masters\n"))
	log := start(t, program, "kube-apiserver", "--etcd-servers", etcdURL, "--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", secure),
		"--advertise-address=192.0.2.10", "--cert-dir", certs, "--service-account-key-file", key, "--service-account-signing-key-file", key,
		"--service-account-issuer=https://kubernetes.default.svc", "--service-cluster-ip-range=10.96.0.0/16", "--authorization-mode=RBAC",
		"--token-auth-file", tokens, "--disable-admission-plugins=ServiceAccount")
	server := APIServer{Addr: fmt.Sprintf("127.0.0.1:%d", secure), CA: filepath.Join(certs, "apiserver.crt")}
	server.awaitReady(t, log)
	return server
}

// program builds the program, or finds what internal/e2e has built: see kept there, whose checksum this is.
var program = sync.OnceValues(func() (string, error) {
	const dir = "../../kube"
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	fmt.Fprintln(sum, runtime.Version(), os.Getenv("GOFLAGS"))
	for _, pattern := range []string{"go.*", "*.go"} {
		files, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return "", err
		}
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				return "", err
			}
			fmt.Fprintf(sum, "%s %d\n%s", filepath.Join("kube", filepath.Base(file)), len(content), content)
		}
	}
	cache = filepath.Join(cache, "culvert-e2e")
	program := filepath.Join(cache, fmt.Sprintf("kube-%.8x", sum.Sum(nil)))
	now := time.Now()
	if os.Chtimes(program, now, now) == nil { // it is there, and in use
		return program, nil
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	made := fmt.Sprintf("%s.%d", program, os.Getpid()) // another run may build it, too
	build := exec.Command("go", "build", "-o", made, ".")
	build.Dir, build.Env = dir, append(os.Environ(), "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s: %w\n%s", dir, err, out)
	}
	return program, os.Rename(made, program)
})

func start(t *testing.T, program string, args ...string) *buffer {
	t.Helper()
	log := new(buffer)
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // open watches would keep it for half a minute
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return log
}

// buffer may be written and read at the same time.
type buffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write implements io.Writer.
func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *buffer) tail() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return string(b.buf.Bytes()[max(0, b.buf.Len()-5000):])
}

// freePort is one below those that the system gives to clients.
func freePort(t *testing.T) int {
	t.Helper()
	for range 100 {
		port := 20000 + mathrand.IntN(10000)
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			l.Close()
			return port
		}
	}
	t.Fatal("no free port")
	return 0
}

func write(t *testing.T, file string, content []byte) {
	t.Helper()
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func rsaKey(t *testing.T) []byte {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
}

// awaitReady waits until the API server serves. Its certificate is one that it has made for itself.
func (s APIServer) awaitReady(t *testing.T, log *buffer) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+s.Addr+"/readyz", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+AdminToken)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(90 * time.Second); time.Now().Before(deadline); <-tick.C {
		if resp, err := client.Do(r); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return
			}
		}
	}
	t.Fatalf("the API server is not ready:\n%s", log.tail())
}
