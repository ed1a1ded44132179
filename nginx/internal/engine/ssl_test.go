package engine_test

import (
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
	"testing"
	"time"
)

// certificate creates a self-signed certificate and its key in PEM.
func certificate(t *testing.T, name string) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}))
}

func TestTLS(t *testing.T) {
	up := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "secure "+r.Host)
	}))
	defer up.Close()
	aCert, aKey := certificate(t, "a.test")
	bCert, bKey := certificate(t, "b.test")
	s := serve(t, map[string]string{
		"nginx.conf": strings.ReplaceAll(`events {} http {
			server { listen 443 ssl; http2 on; server_name a.test; ssl_certificate a.crt; ssl_certificate_key a.key; ssl_protocols TLSv1.2;
				location / { return 200 "a $scheme $https $ssl_protocol $ssl_server_name"; }
				location /up { proxy_pass https://UP; }
				location /to { return 301 /x; } }
			server { listen 443 ssl; server_name b.test; ssl_certificate b.crt; ssl_certificate_key b.key; return 200 "b $ssl_protocol"; }
		}`, "UP", up.Listener.Addr().String()),
		"a.crt": aCert, "a.key": aKey, "b.crt": bCert, "b.key": bKey,
	})
	get := func(sni, host, target string) (body string, resp *http.Response) {
		t.Helper()
		c := &http.Client{
			Transport:     &http.Transport{TLSClientConfig: &tls.Config{ServerName: sni, InsecureSkipVerify: true}, DisableKeepAlives: true},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
		r, err := http.NewRequest("GET", "https://"+s.first+target, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		resp, err = c.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		data, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(data), resp
	}
	body, resp := get("a.test", "a.test", "/")
	equal(t, "a", body, "a https on TLSv1.2 a.test")
	equal(t, "certificate of a", resp.TLS.PeerCertificates[0].Subject.CommonName, "a.test")
	body, resp = get("b.test", "b.test", "/")
	equal(t, "b", body, "b TLSv1.3")
	equal(t, "certificate of b", resp.TLS.PeerCertificates[0].Subject.CommonName, "b.test")
	_, resp = get("unknown.test", "b.test", "/")
	equal(t, "certificate without a server", resp.TLS.PeerCertificates[0].Subject.CommonName, "a.test")
	body, _ = get("a.test", "a.test", "/up")
	equal(t, "encrypted upstream", body, "secure "+up.Listener.Addr().String())
	_, resp = get("a.test", "a.test", "/to")
	equal(t, "redirect", resp.Header.Get("Location"), "https://a.test:"+port(s.first)+"/x")
}
