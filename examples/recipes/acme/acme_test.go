package acme_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/letsencrypt/pebble/v2/ca"
	"github.com/letsencrypt/pebble/v2/db"
	"github.com/letsencrypt/pebble/v2/va"
	"github.com/letsencrypt/pebble/v2/wfe"
	"github.com/miekg/dns"
	xacme "golang.org/x/crypto/acme"

	"github.com/culvert-go/culvert/examples/recipes/acme"
)

// resolver serves 127.0.0.1 as the address of every name, over TCP.
func resolver(t *testing.T) (addr string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &dns.Server{Listener: l, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, query *dns.Msg) {
		response := new(dns.Msg).SetReply(query)
		if question := query.Question[0]; question.Qtype == dns.TypeA {
			response.Answer = []dns.RR{&dns.A{Hdr: dns.RR_Header{Name: question.Name, Rrtype: dns.TypeA, Class: dns.ClassINET}, A: net.IPv4(127, 0, 0, 1)}}
		}
		_ = w.WriteMsg(response)
	})}
	served := make(chan error, 1)
	go func() { served <- s.ActivateAndServe() }()
	t.Cleanup(func() {
		l.Close()
		<-served
	})
	return l.Addr().String()
}

// pebble starts Let's Encrypt's ACME server for tests, which checks that hosts are served on the port. It returns a client of
// it, and the roots of its certificates.
func pebble(t *testing.T, port int) (*xacme.Client, *x509.CertPool) {
	t.Setenv("PEBBLE_VA_NOSLEEP", "1")
	quiet := log.New(io.Discard, "", 0)
	resolver := resolver(t)
	store := db.NewMemoryStore()
	authority := ca.New(quiet, store, "", "ecdsa", 0, 1, map[string]ca.Profile{"default": {}})
	front := wfe.New(quiet, store, va.New(quiet, 0, port, true, resolver, store), authority, []string{"pebble.example"}, true, false, 1, 1)
	s := httptest.NewTLSServer(front.Handler())
	t.Cleanup(s.Close)
	roots := x509.NewCertPool()
	block, _ := pem.Decode(authority.GetRootCert(0).PEM())
	root, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	roots.AddCert(root)
	return &xacme.Client{DirectoryURL: s.URL + wfe.DirectoryPath, HTTPClient: s.Client()}, roots
}

func TestCertificateFromPebble(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	client, roots := pebble(t, l.Addr().(*net.TCPAddr).Port)
	folder := t.TempDir()
	hello := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "hello") })
	s := acme.Server(hello, folder, client, "shop.example")
	s.ErrorLog = log.New(io.Discard, "", 0)
	go func() { _ = s.ServeTLS(l, "", "") }()
	defer s.Close()

	get := func(host string) (string, error) {
		transport := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: host}}
		defer transport.CloseIdleConnections()
		resp, err := (&http.Client{Transport: transport}).Get("https://" + l.Addr().String())
		if err != nil {
			return "", err
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		return string(body) + " " + resp.Proto, err
	}
	if got, err := get("shop.example"); err != nil || got != "hello HTTP/2.0" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := os.Stat(folder + "/shop.example"); err != nil {
		t.Errorf("the certificate is not kept: %v", err)
	}
	if got, err := get("other.example"); err == nil {
		t.Errorf("a host that is not listed: %q", got)
	}
}

func TestRedirect(t *testing.T) {
	w := httptest.NewRecorder()
	acme.Redirect(w, httptest.NewRequest("GET", "http://shop.example/a%2Fb?c=%zz", nil))
	if got := w.Header().Get("Location"); w.Code != 308 || got != "https://shop.example/a%2Fb?c=%zz" {
		t.Errorf("%d to %s", w.Code, got)
	}
}
