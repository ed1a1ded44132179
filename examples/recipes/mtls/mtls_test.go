package mtls_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/culvert-go/culvert/examples/recipes/mtls"
	"github.com/culvert-go/culvert/upstream"
)

// authority is a certificate authority.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T, name string) *authority {
	a := &authority{t: t}
	made := a.certificate(&x509.Certificate{Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	a.cert, a.key = made.Leaf, made.PrivateKey.(*ecdsa.PrivateKey)
	return a
}

// certificate signs template, by itself if the authority has no certificate yet.
func (a *authority) certificate(template *x509.Certificate) tls.Certificate {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

func (a *authority) server(name string) tls.Certificate {
	return a.certificate(&x509.Certificate{Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
}

func (a *authority) client(name string) tls.Certificate {
	return a.certificate(&x509.Certificate{Subject: pkix.Name{CommonName: name}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// target serves the name that the gateway sends, and that of the gateway's certificate.
func target(t *testing.T, certificate tls.Certificate, ca *x509.CertPool) upstream.Target {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Header.Get("X-Client-Name")+" by "+r.TLS.PeerCertificates[0].Subject.CommonName)
	}))
	s.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: ca}
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return upstream.Target{Addr: s.Listener.Addr().String()}
}

// gateway serves a gateway in front of to, and returns its URL.
func gateway(t *testing.T, outside, inside *authority, to upstream.Target) (url string) {
	app, err := mtls.Targets(inside.client("gateway"), inside.pool(), to)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { app.Close() })
	h, err := mtls.Gateway(app)
	if err != nil {
		t.Fatal(err)
	}
	s := mtls.Clients(outside.server("gateway.example"), outside.pool(), h)
	s.ErrorLog = log.New(io.Discard, "", 0)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = s.ServeTLS(l, "", "") }()
	t.Cleanup(func() { s.Close() })
	return "https://" + l.Addr().String()
}

func TestBothSides(t *testing.T) {
	outside, inside, foreign := newAuthority(t, "outside"), newAuthority(t, "inside"), newAuthority(t, "foreign")
	url := gateway(t, outside, inside, target(t, inside.server("app.internal"), inside.pool()))
	get := func(url string, certificates ...tls.Certificate) (*http.Response, error) {
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: outside.pool(), ServerName: "gateway.example", Certificates: certificates}}
		defer transport.CloseIdleConnections()
		r, err := http.NewRequest("GET", url, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Client-Name", "root")
		return transport.RoundTrip(r)
	}
	resp, err := get(url, outside.client("alice"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err != nil || string(body) != "alice by gateway" {
		t.Errorf("%q, %v", body, err)
	}
	for name, certificates := range map[string][]tls.Certificate{"none": nil, "foreign": {foreign.client("alice")}} {
		if resp, err := get(url, certificates...); err == nil {
			resp.Body.Close()
			t.Errorf("%s: status %d", name, resp.StatusCode)
		}
	}
	for name, certificate := range map[string]tls.Certificate{"another name": inside.server("other.internal"), "another CA": foreign.server("app.internal")} {
		resp, err := get(gateway(t, outside, inside, target(t, certificate, inside.pool())), outside.client("alice"))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusBadGateway {
			t.Errorf("a target with %s: status %d", name, resp.StatusCode)
		}
	}
}
