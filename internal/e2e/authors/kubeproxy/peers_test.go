package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/culvert-go/culvert/internal/e2e/authors/kubetest"
)

// cluster is an API server with a gateway in front.
type cluster struct {
	addr     string // the gateway's
	ca       []byte
	admin    kubernetes.Interface // to the API server itself
	log      *lines
	shutdown context.CancelFunc
	served   chan error // receives the error of Serve
}

// The users and their teams.
var users = []User{
	{Name: "alice", Groups: []string{"developers"}, TokenSHA256: hash("alice-token"), Teams: []string{"red"}, Exec: true},
	{Name: "bob", Groups: []string{"developers"}, TokenSHA256: hash("bob-token"), Teams: []string{"red", "blue"}},
	{Name: "carol", TokenSHA256: hash("carol-token"), Teams: []string{"red"}}, // RBAC gives her nothing
}

func hash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

func start(t *testing.T) *cluster {
	t.Helper()
	apiserver := kubetest.Start(t)
	certFile, keyFile, ca := certificate(t)
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte(kubetest.AdminToken+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := &cluster{ca: ca, log: new(lines), served: make(chan error, 1)}
	g, err := New(Config{
		Cert: certFile, Key: keyFile, Server: apiserver.Addr, CA: apiserver.CA, ServerName: "kubernetes", Token: token, Users: users,
	}, slog.New(slog.NewJSONHandler(c.log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c.addr = l.Addr().String()
	ctx, shutdown := context.WithCancel(context.Background())
	c.shutdown = shutdown
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.served <- g.Serve(ctx, l)
	}()
	t.Cleanup(func() {
		shutdown()
		<-ended
	})
	if c.admin, err = kubernetes.NewForConfig(&rest.Config{
		Host: "https://" + apiserver.Addr, BearerToken: kubetest.AdminToken, TLSClientConfig: rest.TLSClientConfig{CAFile: apiserver.CA, ServerName: "kubernetes"}, QPS: 1000, Burst: 1000,
	}); err != nil {
		t.Fatal(err)
	}
	c.permit(t)
	return c
}

// permit has RBAC let the group developers do anything with pods and configmaps.
func (c *cluster) permit(t *testing.T) {
	t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "developer"}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{""}, Resources: []string{"pods", "pods/exec", "pods/log", "configmaps"}, Verbs: []string{"*"},
	}}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "developers"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "developer"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "developers"}},
	}
	_, err := c.admin.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{})
	_, err2 := c.admin.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{})
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
}

// config is that of a user's client.
func (c *cluster) config(token, contentType string) *rest.Config {
	return &rest.Config{
		Host: "https://" + c.addr, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{CAData: c.ca, ServerName: "localhost"}, QPS: 1000, Burst: 1000,
		ContentConfig: rest.ContentConfig{ContentType: contentType, AcceptContentTypes: contentType + ",application/json"},
	}
}

func (c *cluster) client(t *testing.T, token string) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(c.config(token, "application/json"))
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func pod(name, team string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Labels: map[string]string{"team": team}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "registry.example/c"}}},
	}
}

// lines are those of the log.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write implements io.Writer.
func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) all() [][]byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Split(bytes.TrimSpace(bytes.Clone(l.buf.Bytes())), []byte("\n"))
}

// certificate makes a certificate for localhost that is its own authority.
func certificate(t *testing.T) (certFile, keyFile string, ca []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"},
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
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if err := errors.Join(os.WriteFile(certFile, ca, 0o600),
		os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), 0o600)); err != nil {
		t.Fatal(err)
	}
	return certFile, keyFile, ca
}
