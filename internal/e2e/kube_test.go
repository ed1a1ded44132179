package e2e

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
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
	"strings"
	"testing"
	"time"

	"github.com/culvert-go/culvert/internal/wiretest"
)

// kubeProgram is the module in kube: etcd, kube-apiserver and kube-proxy. It takes minutes
// to build where nothing of it is in Go's cache.
var kubeProgram = kept("kube", "kube", ".", "go.*", "*.go")

// adminToken is that of a user who may do everything.
const adminToken = "culvert-admin"

// proxyToken is that of the user that RBAC lets read what kube-proxy needs.
const proxyToken = "culvert-proxy"

// startKubernetes starts etcd and a kube-apiserver on loopback, and returns the apiserver's
// address.
func startKubernetes(t *testing.T) (address string) {
	t.Helper()
	return fmt.Sprintf("127.0.0.1:%d", startKubernetesOn(t, "127.0.0.1"))
}

// startKubernetesOn returns the apiserver's port.
func startKubernetesOn(t *testing.T, bind string) (port int) {
	t.Helper()
	program, err := kubeProgram()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	etcd, peer, secure := freePort(t), freePort(t), freePort(t)
	etcdURL := fmt.Sprintf("http://127.0.0.1:%d", etcd)
	startKube(t, program, "etcd", "--data-dir", filepath.Join(dir, "etcd"), "--unsafe-no-fsync", "--log-level=error",
		"--listen-client-urls", etcdURL, "--advertise-client-urls", etcdURL,
		"--listen-peer-urls", fmt.Sprintf("http://127.0.0.1:%d", peer), "--initial-advertise-peer-urls", fmt.Sprintf("http://127.0.0.1:%d", peer),
		"--initial-cluster", fmt.Sprintf("default=http://127.0.0.1:%d", peer))
	key := filepath.Join(dir, "key.pem")
	write(t, key, rsaKey(t))
	write(t, filepath.Join(dir, "tokens"), []byte(adminToken+",admin,1,system:masters\n"+proxyToken+",system:kube-proxy,2\n"))
	log := startKube(t, program, "kube-apiserver", "--etcd-servers", etcdURL, "--bind-address="+bind, fmt.Sprintf("--secure-port=%d", secure),
		"--advertise-address=192.0.2.10", "--cert-dir", filepath.Join(dir, "certs"), "--service-account-key-file", key, "--service-account-signing-key-file", key,
		"--service-account-issuer=https://kubernetes.default.svc", "--service-cluster-ip-range=10.96.0.0/16", "--authorization-mode=RBAC",
		"--token-auth-file", filepath.Join(dir, "tokens"), "--disable-admission-plugins=ServiceAccount")
	awaitReady(t, fmt.Sprintf("127.0.0.1:%d", secure), log)
	return secure
}

// startKube starts one of the programs. It is killed at the end: open watches would keep it
// for half a minute.
func startKube(t *testing.T, program string, args ...string) (log *wiretest.Log) {
	t.Helper()
	log = new(wiretest.Log)
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return log
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
	var b bytes.Buffer
	if err := pem.Encode(&b, &pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// anyCertificate trusts the certificate that the server has made for itself.
func anyCertificate() *tls.Config { return &tls.Config{InsecureSkipVerify: true} }

func awaitReady(t *testing.T, address string, log *wiretest.Log) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: anyCertificate(), DisableKeepAlives: true}}
	r, err := http.NewRequest(http.MethodGet, "https://"+address+"/readyz", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+adminToken)
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
	lines := strings.Split(log.String(), "\n")
	t.Fatalf("the apiserver is not ready:\n%s", strings.Join(lines[max(0, len(lines)-30):], "\n"))
}
