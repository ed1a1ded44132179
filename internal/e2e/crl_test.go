package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"
)

// signer is an authority, or whom it has signed.
type signer struct {
	cert   *x509.Certificate
	key    *ecdsa.PrivateKey
	issuer *signer
}

// sign makes a certificate, of an authority if there is a usage. nil signs a root.
func (s *signer) sign(name string, serial int64, usage x509.KeyUsage) *signer {
	made := &signer{issuer: s}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, SubjectKeyId: []byte(name),
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), BasicConstraintsValid: true, IsCA: usage != 0, KeyUsage: usage,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	var err error
	if made.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		panic(err)
	}
	by := s
	if by == nil {
		by = &signer{cert: template, key: made.key}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, by.cert, &made.key.PublicKey, by.key)
	if err != nil {
		panic(err)
	}
	if made.cert, err = x509.ParseCertificate(der); err != nil {
		panic(err)
	}
	return made
}

func (s *signer) pem() string { return encode("CERTIFICATE", s.cert.Raw) }

func (s *signer) keyPEM() string {
	der, err := x509.MarshalECPrivateKey(s.key)
	if err != nil {
		panic(err)
	}
	return encode("EC PRIVATE KEY", der)
}

// pair is the certificate with those between it and the root.
func (s *signer) pair() tls.Certificate {
	pair := tls.Certificate{PrivateKey: s.key, Certificate: [][]byte{s.cert.Raw}}
	for c := s.issuer; c != nil && c.issuer != nil; c = c.issuer {
		pair.Certificate = append(pair.Certificate, c.cert.Raw)
	}
	return pair
}

// list makes a list of what s has revoked, as old as that.
func (s *signer) list(age time.Duration, serials ...int64) string {
	template := &x509.RevocationList{Number: big.NewInt(1), ThisUpdate: time.Now().Add(-age), NextUpdate: time.Now().Add(24*time.Hour - age)}
	for _, n := range serials {
		template.RevokedCertificateEntries = append(template.RevokedCertificateEntries, x509.RevocationListEntry{SerialNumber: big.NewInt(n), RevocationTime: time.Now()})
	}
	may := *s.cert
	may.KeyUsage |= x509.KeyUsageCRLSign
	der, err := x509.CreateRevocationList(rand.Reader, template, &may, s.key)
	if err != nil {
		panic(err)
	}
	return encode("X509 CRL", der)
}

// revocation is what the servers of TestCRLAsNginx are made of: NAME.pem are lists, and who is
// trusted beside the root.
type revocation struct{ name, lists, trusted string }

// TestCRLAsNginx: what becomes of clients and upstreams under ssl_crl and proxy_ssl_crl.
func TestCRLAsNginx(t *testing.T) {
	const fresh, old, future = time.Hour, 48 * time.Hour, -time.Hour
	const mayList, mayNot = x509.KeyUsageCertSign | x509.KeyUsageCRLSign, x509.KeyUsageCertSign
	root := (*signer)(nil).sign("root", 1, mayList)
	middle, mute := root.sign("middle", 5, mayList), root.sign("mute", 6, mayNot)
	impostor, stranger := (*signer)(nil).sign("root", 1, mayList), (*signer)(nil).sign("stranger", 1, mayList)
	clients := map[string]*signer{"client": root.sign("client", 7, 0), "below": middle.sign("below", 7, 0), "muted": mute.sign("muted", 7, 0),
		"stranger": stranger, "unknown": stranger.sign("unknown", 7, 0)}
	revocations := []revocation{
		{"clean", root.list(fresh) + middle.list(fresh), ""},
		{"revoked", root.list(fresh, 7) + middle.list(fresh), ""},
		{"root", root.list(fresh, 1), ""},
		{"below", root.list(fresh) + middle.list(fresh, 8, 7), ""},
		{"middle", root.list(fresh, 5) + middle.list(fresh), ""},
		{"anchored", root.list(fresh, 5) + middle.list(fresh), middle.pem()},
		{"half", root.list(fresh), ""},
		{"other", middle.list(fresh), ""},
		{"old", root.list(old), ""},
		{"oldrevoked", root.list(old, 7) + middle.list(fresh), ""},
		{"future", root.list(future), ""},
		{"both", root.list(old, 7) + root.list(fresh) + middle.list(fresh), ""},
		{"newer", root.list(2*fresh, 7) + root.list(fresh), ""},
		{"older", root.list(2*fresh) + root.list(fresh, 7), ""},
		{"forged", impostor.list(fresh), ""},
		{"mute", root.list(fresh) + mute.list(fresh), ""},
		{"stranger", root.list(fresh) + stranger.list(fresh, 1, 7), ""},
	}
	up := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "upstream") }))
	up.TLS = &tls.Config{Certificates: []tls.Certificate{clients["below"].pair()}}
	up.Config.ErrorLog = log.New(io.Discard, "", 0)
	up.StartTLS()
	t.Cleanup(up.Close)
	site := root.sign("site", 100, 0)
	conf, files := crlSite(revocations, up.Listener.Addr().String()), map[string]string{"site.pem": site.pem(), "site.key": site.keyPEM()}
	for _, r := range revocations {
		files[r.name+".crl"], files[r.name+".ca"] = r.lists, root.pem()+r.trusted
	}
	sameOnBoth(t, startNginx, func(t *testing.T, start starter) (lines []string) {
		h := &holding{t: t, server: start(t, conf, files)}
		for _, r := range revocations {
			for _, client := range []string{"client", "below", "muted", "stranger", "unknown"} {
				pair := clients[client].pair()
				lines = append(lines, fmt.Sprintf("%s %s: %s, %s", r.name, client, h.getWith(pair, r.name+".on", "/"), h.getWith(pair, r.name+".any", "/")))
			}
			lines = append(lines, fmt.Sprintf("%s upstream: %s", r.name, h.getWith(clients["client"].pair(), "open", "/"+r.name)))
		}
		return lines
	})
}

// crlSite is the configuration: each file of lists has a server that insists on a certificate, one
// that does not, and a location of which the upstream has one.
func crlSite(revocations []revocation, upstream string) string {
	var b strings.Builder
	b.WriteString("http { access_log off; ssl_certificate site.pem; ssl_certificate_key site.key;\n")
	for _, r := range revocations {
		fmt.Fprintf(&b, `server { listen {{LISTEN}} ssl; server_name %[1]s.on; ssl_verify_client on; ssl_client_certificate %[1]s.ca; ssl_crl %[1]s.crl; return 200 $ssl_client_verify; }
server { listen {{LISTEN}} ssl; server_name %[1]s.any; ssl_verify_client optional_no_ca; ssl_client_certificate %[1]s.ca; ssl_crl %[1]s.crl; error_page 495 =200 @refused; location / { return 200 in; } location @refused { return 200 $ssl_client_verify; } }
`, r.name)
	}
	b.WriteString("server { listen {{LISTEN}} ssl; server_name open; ssl_crl clean.crl; proxy_ssl_verify on; proxy_ssl_name below; proxy_ssl_session_reuse off;\n")
	for _, r := range revocations {
		fmt.Fprintf(&b, "location /%[1]s { proxy_ssl_trusted_certificate %[1]s.ca; proxy_ssl_crl %[1]s.crl; proxy_pass https://%[2]s; }\n", r.name, upstream)
	}
	return b.String() + "} }\n"
}

// signature is how a built-in page is signed.
var signature = regexp.MustCompile(`<center>(nginx|culvert)[^<]*</center>`)

// getWith sends a request with a certificate and returns what it received.
func (h *holding) getWith(pair tls.Certificate, name, target string) string {
	h.t.Helper()
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{ServerName: name, InsecureSkipVerify: true,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }}}
	r, err := http.NewRequest("GET", "https://"+h.address+target, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	r.Host = name
	resp, err := transport.RoundTrip(r)
	if err != nil {
		h.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	return fmt.Sprintf("%d %q", resp.StatusCode, signature.ReplaceAllString(string(body), ""))
}
