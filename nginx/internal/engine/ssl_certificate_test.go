package engine_test

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// encrypted returns a key of PEM encrypted with a password.
func encrypted(t *testing.T, key, password string) string {
	t.Helper()
	b, _ := pem.Decode([]byte(key))
	private, err := x509.ParseECPrivateKey(b.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	//lint:ignore SA1019 keys of this kind exist
	block, err := x509.EncryptPEMBlock(rand.Reader, "EC PRIVATE KEY", der, []byte(password), x509.PEMCipherAES128)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(block))
}

// handshake returns the name of the certificate that a server shows, or the error.
func handshake(addr, name string) string {
	c, err := tls.Dial("tcp", addr, &tls.Config{ServerName: name, InsecureSkipVerify: true})
	if err != nil {
		return err.Error()
	}
	defer c.Close()
	return c.ConnectionState().PeerCertificates[0].Subject.CommonName
}

// Certificates may have variables, of which a handshake has the server name, and keys passwords. A name that is no host name leads
// to no file.
func TestVariableCertificates(t *testing.T) {
	aCert, aKey := certificate(t, "a.test")
	bCert, bKey := certificate(t, "b.test")
	s := serve(t, map[string]string{
		"nginx.conf": `events {} http {
			map $ssl_server_name $pem { default ""; b.test "` + bCert + `"; }
			map $ssl_server_name $key { default ""; b.test "` + bKey + `"; }
			server { listen 443 ssl; ssl_password_file passwords; ssl_certificate certs/$ssl_server_name.crt; ssl_certificate_key certs/$ssl_server_name.key; }
			server { listen 444 ssl; ssl_certificate data:$pem; ssl_certificate_key data:$key; }
			server { listen 445 ssl; ssl_certificate "data:` + aCert + `"; ssl_certificate_key "data:` + aKey + `"; } }`,
		"certs/a.test.crt": aCert, "certs/a.test.key": encrypted(t, aKey, "secret"), "passwords": "wrong\nsecret\n",
		"b.crt": bCert, "b.key": bKey,
	})
	for _, c := range []struct{ port, name, want string }{
		{"443", "a.test", "a.test"}, {"443", "A.TEST", "a.test"}, {"443", "c.test", "remote error: tls: internal error"}, {"443", "../b", "remote error: tls: internal error"},
		{"444", "b.test", "b.test"}, {"444", "a.test", "remote error: tls: internal error"}, {"445", "any", "a.test"},
	} {
		if got := handshake(s.addrs["0.0.0.0:"+c.port], c.name); got != c.want {
			t.Errorf("port %s for %s: %q, want %q", c.port, c.name, got, c.want)
		}
	}
	if log := s.errors.String(); !strings.Contains(log, "cannot load certificate") || strings.Contains(log, "/b.crt") {
		t.Errorf("the log: %s", log)
	}
}

// On an address whose default server rejects handshakes, each other server needs a certificate. Elsewhere it has the default's.
func TestServersWithoutCertificates(t *testing.T) {
	cert, key := certificate(t, "a.test")
	files := map[string]string{"c": cert, "k": key}
	pair := "ssl_certificate c; ssl_certificate_key k;"
	for conf, ok := range map[string]bool{
		"server { listen 443 ssl; " + pair + " } server { listen 443 ssl; server_name b.test; ssl_verify_client on; }":        true,
		"server { listen 443 ssl; ssl_reject_handshake on; } server { listen 443; server_name b.test; " + pair + " }":         true,
		"server { listen 443 ssl; ssl_reject_handshake on; } server { listen 443; server_name b.test; }":                      false,
		"server { listen 443 ssl; } server { listen 443 ssl; server_name b.test; " + pair + " }":                              false,
		"server { listen 443 ssl default_server; " + pair + " } server { listen 443 ssl; server_name b.test; return 200 b; }": true,
	} {
		files["nginx.conf"] = "events {} http { " + conf + " }"
		s, err := load(t, files)
		if (err == nil) != ok {
			t.Errorf("%s: %v", conf, err)
		}
		if err != nil {
			continue
		}
		s.serve()
		if got := handshake(s.first, "b.test"); got != "a.test" {
			t.Errorf("%s: %s", conf, got)
		}
	}
}

// Clients may be verified by trusted certificates alone, whose names are not sent to them.
func TestVerifyByTrusted(t *testing.T) {
	cert, key := certificate(t, "a.test")
	s := serve(t, map[string]string{"c": cert, "k": key, "nginx.conf": `events {} http { server { listen 443 ssl; ssl_certificate c; ssl_certificate_key k;
		ssl_verify_client on; ssl_trusted_certificate c; return 200; } }`})
	pair, err := tls.X509KeyPair([]byte(cert), []byte(key))
	if err != nil {
		t.Fatal(err)
	}
	strangerCert, strangerKey := certificate(t, "b.test")
	stranger, err := tls.X509KeyPair([]byte(strangerCert), []byte(strangerKey))
	if err != nil {
		t.Fatal(err)
	}
	for want, certs := range map[int][]tls.Certificate{200: {pair}, 400: {stranger}} {
		transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true,
			GetClientCertificate: func(r *tls.CertificateRequestInfo) (*tls.Certificate, error) {
				if len(r.AcceptableCAs) > 0 {
					t.Error("names of authorities were sent")
				}
				return &certs[0], nil
			}}}
		got, err := (&http.Client{Transport: transport}).Get("https://" + s.first + "/")
		if err != nil {
			t.Fatal(err)
		}
		got.Body.Close()
		equal(t, "status", got.StatusCode, want)
	}
}

// The proxy's own certificate may have variables; the empty name is none.
func TestVariableProxyCertificate(t *testing.T) {
	up := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := "none"
		if len(r.TLS.PeerCertificates) > 0 {
			name = r.TLS.PeerCertificates[0].Subject.CommonName
		}
		w.Header().Set("X-Name", name)
	}))
	up.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	up.StartTLS()
	defer up.Close()
	aCert, aKey := certificate(t, "a.test")
	bCert, bKey := certificate(t, "b.test")
	s := serve(t, map[string]string{
		"nginx.conf": strings.ReplaceAll(`events {} http { server { proxy_ssl_certificate a.crt; proxy_ssl_certificate_key a.key; proxy_ssl_password_file passwords;
			location / { proxy_pass https://UP; }
			location /var { proxy_pass https://UP; proxy_ssl_certificate $arg_c.crt; proxy_ssl_certificate_key $arg_c.key; }
			location /whole { proxy_pass https://UP; proxy_ssl_certificate $arg_c; proxy_ssl_certificate_key $arg_c; }
			location /none { proxy_pass https://UP; proxy_ssl_certificate ""; proxy_ssl_certificate_key ""; } } }`, "UP", up.Listener.Addr().String()),
		"a.crt": aCert, "a.key": encrypted(t, aKey, "secret"), "b.crt": bCert, "b.key": bKey, "passwords": "secret",
	})
	for path, want := range map[string]string{"/": "a.test", "/var?c=a": "a.test", "/var?c=b": "b.test", "/whole": "none", "/none": "none", "/var?c=x": ""} {
		for range 2 {
			if got := s.get(path); got.Header.Get("X-Name") != want || (got.StatusCode == 200) != (want != "") {
				t.Errorf("%s: %d, %q", path, got.StatusCode, got.Header.Get("X-Name"))
			}
		}
	}
	if _, err := load(t, map[string]string{"nginx.conf": "events {} http { server { ssl_password_file none; } }"}); err == nil || !strings.Contains(err.Error(), `none" failed (2: No such file or directory) in`) {
		t.Errorf("without the file of passwords: %v", err)
	}
}

// Sessions of upstreams are resumed unless the configuration says otherwise.
func TestUpstreamSessions(t *testing.T) {
	up := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Resumed", strconv.FormatBool(r.TLS.DidResume))
	}))
	up.Config.SetKeepAlivesEnabled(false)
	up.StartTLS()
	defer up.Close()
	s := serve(t, map[string]string{"nginx.conf": strings.ReplaceAll(`events {} http { server {
		location / { proxy_pass https://UP; } location /off { proxy_pass https://UP; proxy_ssl_session_reuse off; } } }`, "UP", up.Listener.Addr().String())})
	for i := range 3 {
		if got, want := s.get("/").Header.Get("X-Resumed"), strconv.FormatBool(i > 0); got != want {
			t.Errorf("request %d: resumed %s, want %s", i, got, want)
		}
		equal(t, "with proxy_ssl_session_reuse off", s.get("/off").Header.Get("X-Resumed"), "false")
	}
}

// A certificate whose name has variables is that of its file at each handshake, unless there is a cache.
func TestCertificateFilesChange(t *testing.T) {
	up := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Name", r.TLS.PeerCertificates[0].Subject.CommonName)
	}))
	up.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	up.StartTLS()
	defer up.Close()
	oldCert, oldKey := certificate(t, "old")
	newCert, newKey := certificate(t, "new")
	s := serve(t, map[string]string{
		"nginx.conf": strings.ReplaceAll(`events {} http { proxy_ssl_certificate $arg_c.crt; proxy_ssl_certificate_key $arg_c.key;
			server { listen 80; location / { proxy_pass https://UP; } location /kept { proxy_pass https://UP; proxy_ssl_certificate_cache max=4; } }
			server { listen 443 ssl; ssl_certificate $ssl_server_name.crt; ssl_certificate_key $ssl_server_name.key; }
			server { listen 444 ssl; ssl_certificate_cache max=4; ssl_certificate $ssl_server_name.crt; ssl_certificate_key $ssl_server_name.key; } }`,
			"UP", up.Listener.Addr().String()),
		"a.crt": oldCert, "a.key": oldKey,
	})
	check := func(want, kept string) {
		t.Helper()
		equal(t, "proxy", s.get("/?c=a").Header.Get("X-Name"), want)
		equal(t, "proxy with a cache", s.get("/kept?c=a").Header.Get("X-Name"), kept)
		equal(t, "server", handshake(s.addrs["0.0.0.0:443"], "a"), want)
		equal(t, "server with a cache", handshake(s.addrs["0.0.0.0:444"], "a"), kept)
	}
	check("old", "old")
	for name, text := range map[string]string{"a.crt": newCert, "a.key": newKey} {
		path := filepath.Join(s.dir, name)
		if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	check("new", "old")
}
