package engine_test

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// signer is a certificate with its key.
type signer struct {
	t      *testing.T
	cert   *x509.Certificate
	key    *ecdsa.PrivateKey
	issuer *signer
}

// newSigner creates a root.
func newSigner(t *testing.T, name string) *signer {
	return (*signer)(nil).sign(t, name, 1, x509.KeyUsageCertSign|x509.KeyUsageCRLSign)
}

// sign creates a certificate; with a usage of 0 it is not that of an authority.
func (s *signer) sign(t *testing.T, name string, serial int64, usage x509.KeyUsage) *signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	made := &signer{t: t, key: key, issuer: s}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, SubjectKeyId: []byte(name),
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), BasicConstraintsValid: true, IsCA: usage != 0, KeyUsage: usage,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if s == nil {
		s = &signer{cert: template, key: key}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, s.cert, &key.PublicKey, s.key)
	if err != nil {
		t.Fatal(err)
	}
	if made.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return made
}

func (s *signer) pem() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.cert.Raw}))
}

// pair returns the certificate with those between it and the root.
func (s *signer) pair() tls.Certificate {
	pair := tls.Certificate{PrivateKey: s.key}
	for c := s; c.issuer != nil; c = c.issuer {
		pair.Certificate = append(pair.Certificate, c.cert.Raw)
	}
	if len(pair.Certificate) == 0 {
		pair.Certificate = [][]byte{s.cert.Raw}
	}
	return pair
}

// list creates a list of the certificates that s has revoked; change, if not nil, modifies it.
func (s *signer) list(change func(*x509.RevocationList), serials ...int64) string {
	s.t.Helper()
	template := &x509.RevocationList{Number: big.NewInt(1), ThisUpdate: time.Now().Add(-time.Hour), NextUpdate: time.Now().Add(time.Hour)}
	for _, n := range serials {
		template.RevokedCertificateEntries = append(template.RevokedCertificateEntries, x509.RevocationListEntry{SerialNumber: big.NewInt(n), RevocationTime: time.Now()})
	}
	if change != nil {
		change(template)
	}
	may := *s.cert
	may.KeyUsage |= x509.KeyUsageCRLSign
	der, err := x509.CreateRevocationList(rand.Reader, template, &may, s.key)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "X509 CRL", Bytes: der}))
}

func expired(l *x509.RevocationList) {
	l.ThisUpdate, l.NextUpdate = time.Now().Add(-2*time.Hour), time.Now().Add(-time.Hour)
}

func early(l *x509.RevocationList) { l.ThisUpdate = time.Now().Add(time.Minute) }

func older(l *x509.RevocationList) { l.ThisUpdate = time.Now().Add(-2 * time.Hour) }

func critical(l *x509.RevocationList) {
	l.ExtraExtensions = append(l.ExtraExtensions, pkix.Extension{Id: []int{1, 2, 3, 4}, Critical: true, Value: []byte{5, 0}})
}

func takenBack(l *x509.RevocationList) {
	for i := range l.RevokedCertificateEntries {
		l.RevokedCertificateEntries[i].ReasonCode = 8
	}
}

// The verification of a client's certificate with a file of lists.
func TestCRL(t *testing.T) {
	const ca = x509.KeyUsageCertSign | x509.KeyUsageCRLSign
	root := newSigner(t, "root")
	middle := root.sign(t, "middle", 5, ca)
	mute := root.sign(t, "mute", 6, x509.KeyUsageCertSign)
	client, below, muted := root.sign(t, "client", 7, 0), middle.sign(t, "below", 7, 0), mute.sign(t, "muted", 7, 0)
	impostor := newSigner(t, "root")
	stranger := newSigner(t, "stranger")
	unknown := stranger.sign(t, "unknown", 7, 0)
	all := root.pem() + middle.pem()
	tests := []struct {
		about   string
		trusted string
		lists   string
		client  *signer
		want    string
	}{
		{"nothing revoked", root.pem(), root.list(nil), client, "SUCCESS"},
		{"another revoked", root.pem(), root.list(nil, 8), client, "SUCCESS"},
		{"revoked", root.pem(), root.list(nil, 8, 7), client, "FAILED:certificate revoked"},
		{"revoked and taken back", root.pem(), root.list(takenBack, 7), client, "SUCCESS"},
		{"the root revoked", root.pem(), root.list(nil, 1), client, "FAILED:certificate revoked"},
		{"no list of the issuer", root.pem(), middle.list(nil), client, "FAILED:unable to get certificate CRL"},
		{"expired", root.pem(), root.list(expired), client, "FAILED:CRL has expired"},
		{"not yet valid", root.pem(), root.list(early), client, "FAILED:CRL is not yet valid"},
		{"expired beside a valid one", root.pem(), root.list(expired, 7) + root.list(nil), client, "SUCCESS"},
		{"expired beside a valid one, the other way", root.pem(), root.list(nil) + root.list(expired, 7), client, "SUCCESS"},
		{"not yet valid beside a valid one", root.pem(), root.list(early, 7) + root.list(nil), client, "SUCCESS"},
		{"the newest counts", root.pem(), root.list(nil, 7) + root.list(older), client, "FAILED:certificate revoked"},
		{"the newest counts, the other way", root.pem(), root.list(older, 7) + root.list(nil), client, "SUCCESS"},
		{"critical extension", root.pem(), root.list(critical), client, "FAILED:unhandled critical CRL extension"},
		{"critical extension beside none", root.pem(), root.list(critical, 7) + root.list(older), client, "SUCCESS"},
		{"another's signature", root.pem(), impostor.list(nil), client, "FAILED:CRL signature failure"},
		{"a chain", root.pem(), root.list(nil) + middle.list(nil), below, "SUCCESS"},
		{"a chain, two files in one", root.pem(), "text\n" + middle.list(nil) + root.pem() + root.list(nil, 7), below, "SUCCESS"},
		{"a chain without the list of its middle", root.pem(), root.list(nil), below, "FAILED:unable to get certificate CRL"},
		{"a chain without the root's", root.pem(), middle.list(nil), below, "FAILED:unable to get certificate CRL"},
		{"the end of a chain revoked", root.pem(), root.list(nil) + middle.list(nil, 7), below, "FAILED:certificate revoked"},
		{"the middle of a chain revoked", root.pem(), root.list(nil, 5) + middle.list(nil), below, "FAILED:certificate revoked"},
		{"the middle trusted and revoked", all, root.list(nil, 5) + middle.list(nil), below, "FAILED:certificate revoked"},
		{"the middle trusted and not revoked", all, root.list(nil) + middle.list(nil), below, "SUCCESS"},
		{"the middle alone trusted", middle.pem(), root.list(nil) + middle.list(nil), below, "FAILED:unable to get issuer certificate"},
		{"who may not sign lists", root.pem(), root.list(nil) + mute.list(nil), muted, "FAILED:key usage does not include CRL signing"},
		{"a self-signed one", root.pem(), root.list(nil), stranger, "FAILED:unable to get certificate CRL"},
		{"a self-signed one that revokes itself", root.pem(), root.list(nil) + stranger.list(nil, 1), stranger, "FAILED:certificate revoked"},
		{"of an unknown issuer", root.pem(), root.list(nil), unknown, "let in"},
	}
	for _, tt := range tests {
		t.Run(tt.about, func(t *testing.T) {
			server := root.sign(t, "a.test", 100, 0)
			key, err := x509.MarshalECPrivateKey(server.key)
			if err != nil {
				t.Fatal(err)
			}
			s := serve(t, map[string]string{"nginx.conf": `events {} http { ssl_certificate a.crt; ssl_certificate_key a.key;
				server { listen 443 ssl; server_name a.test; ssl_verify_client optional_no_ca; ssl_client_certificate ca.crt; ssl_crl lists; error_page 495 =200 @refused;
				location / { return 200 "let in"; } location @refused { return 200 $ssl_client_verify; } }
				server { listen 443 ssl; server_name on.test; ssl_verify_client on; ssl_client_certificate ca.crt; ssl_crl lists; return 200 $ssl_client_verify; } }`,
				"a.crt": server.pem(), "a.key": string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: key})), "ca.crt": tt.trusted, "lists": tt.lists})
			pair := tt.client.pair()
			if tt.client == unknown {
				pair.Certificate = pair.Certificate[:1]
			}
			wanted, body := tt.want, s.getWith(pair, "a.test")
			if wanted == "SUCCESS" {
				wanted = "let in"
			}
			equal(t, "optional_no_ca", body, wanted)
			on := s.getWith(pair, "on.test")
			if tt.want == "SUCCESS" {
				equal(t, "on", on, "SUCCESS")
			} else if !strings.Contains(on, "400 The SSL certificate error") {
				t.Errorf("on: %s", on)
			}
		})
	}
}

// getWith sends a request with a certificate, even if the server does not name its issuer.
func (s *site) getWith(pair tls.Certificate, name string) (body string) {
	s.t.Helper()
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{ServerName: name, InsecureSkipVerify: true,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }}}
	r, err := http.NewRequest("GET", "https://"+s.first+"/", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Host = name
	resp, err := transport.RoundTrip(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(data)
}

func TestProxyCRL(t *testing.T) {
	root := newSigner(t, "root")
	up := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "upstream") }))
	up.TLS = &tls.Config{Certificates: []tls.Certificate{root.sign(t, "up.test", 7, 0).pair()}}
	up.StartTLS()
	defer up.Close()
	s := serve(t, with(server(strings.ReplaceAll(`proxy_ssl_verify on; proxy_ssl_name up.test; proxy_ssl_trusted_certificate ca.crt; error_log errors.log;
		location /good { proxy_ssl_crl good; proxy_pass https://UP; }
		location /revoked { proxy_ssl_crl revoked; proxy_pass https://UP; }
		location /expired { proxy_ssl_crl expired; proxy_pass https://UP; }
		location /off { proxy_ssl_verify off; proxy_ssl_crl none; proxy_pass https://UP; }
		location /empty { proxy_ssl_crl ""; proxy_pass https://UP; }`, "UP", up.Listener.Addr().String())),
		"ca.crt", root.pem(), "good", root.list(nil), "revoked", root.list(nil, 7), "expired", root.list(expired)))
	for path, want := range map[string]int{"/good": 200, "/revoked": 502, "/expired": 502, "/off": 200, "/empty": 200} {
		equal(t, path, s.get(path).StatusCode, want)
	}
	for _, want := range []string{"certificate revoked", "CRL has expired"} {
		if got := s.file("errors.log"); strings.Count(got, want) != 1 {
			t.Errorf("error log: %q", got)
		}
	}
}

// A trusted certificate whose own issuer is not trusted ends no chain, as in nginx.
func TestIntermediateAloneTrusted(t *testing.T) {
	root := newSigner(t, "root")
	middle := root.sign(t, "middle", 5, x509.KeyUsageCertSign)
	client, server := middle.sign(t, "client", 7, 0), root.sign(t, "a.test", 100, 0)
	key, err := x509.MarshalECPrivateKey(server.key)
	if err != nil {
		t.Fatal(err)
	}
	for trusted, want := range map[string]string{middle.pem(): "FAILED:unable to get issuer certificate", middle.pem() + root.pem(): "SUCCESS"} {
		s := serve(t, map[string]string{"nginx.conf": `events {} http { server { listen 443 ssl; ssl_certificate a.crt; ssl_certificate_key a.key;
			ssl_verify_client optional; ssl_client_certificate ca.crt; error_page 495 =200 /; location / { return 200 $ssl_client_verify; } } }`,
			"a.crt": server.pem(), "a.key": string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: key})), "ca.crt": trusted})
		equal(t, "verified", s.getWith(client.pair(), "a.test"), want)
	}
}

// A client's certificate is verified by the rules of the server that TLS has named, also for a request that is refused before its
// server's rules apply: the Host of another one must not cost a look at a responder each time.
func TestRefusedRequestOfAnotherHost(t *testing.T) {
	var requests atomic.Int32
	responder := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		w.WriteHeader(http.StatusNotFound)
	}))
	defer responder.Close()
	root := newSigner(t, "root")
	client, own := root.sign(t, "client", 7, 0).pair(), root.sign(t, "a.test", 100, 0)
	key, err := x509.MarshalECPrivateKey(own.key)
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, map[string]string{"nginx.conf": `events {} http {
		ssl_certificate a.crt; ssl_certificate_key a.key; ssl_verify_client on; ssl_client_certificate ca.crt; ssl_ocsp_responder ` + responder.URL + `;
		server { listen 443 ssl; server_name a.test; return 200 a; }
		server { listen 443 ssl; server_name b.test; ssl_ocsp leaf; return 200 b; } }`,
		"a.crt": own.pem(), "a.key": string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: key})), "ca.crt": root.pem()})
	for _, test := range []struct {
		name, host string
		want       int32
	}{{"a.test", "b.test", 0}, {"a.test", "a.test", 0}, {"b.test", "b.test", 1}} {
		requests.Store(0)
		conn, err := tls.Dial("tcp", s.first, &tls.Config{ServerName: test.name, InsecureSkipVerify: true, Certificates: []tls.Certificate{client}})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, "TRACE / HTTP/1.1\r\nHost: "+test.host+"\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		equal(t, test.host+" over "+test.name, resp.StatusCode, http.StatusMethodNotAllowed)
		equal(t, "looks at the responder for "+test.host+" over "+test.name, requests.Load(), test.want)
	}
}
