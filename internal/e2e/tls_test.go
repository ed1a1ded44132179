package e2e

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"time"
)

const tlsConf = `http { access_log off; default_type text/plain;
ssl_certificate first.pem; ssl_certificate_key first.key;
server { listen {{LISTEN}} ssl; server_name first.example; return 200 "first $scheme $host"; }
server { listen {{LISTEN}} ssl; server_name second.example; error_page 497 https://$host$request_uri;
  ssl_certificate second.pem; ssl_certificate_key second.key;
  location / { return 200 "second $scheme"; }
  location /p { proxy_pass http://{{UP1}}; proxy_set_header X-Forwarded-Proto $scheme; } } }
`

var tlsSteps = []step{
	{name: "default", sni: "first.example", raw: get("/")},
	{name: "by name", sni: "second.example", raw: "GET / HTTP/1.1\r\nHost: second.example\r\n\r\n"},
	{name: "unknown name", sni: "nobody.example", raw: "GET / HTTP/1.1\r\nHost: nobody.example\r\n\r\n"},
	{name: "SNI and Host differ", sni: "first.example", raw: "GET / HTTP/1.1\r\nHost: second.example\r\n\r\n"},
	{name: "proxied", sni: "second.example", raw: "GET /p/x HTTP/1.1\r\nHost: second.example\r\n\r\n"},
	{name: "plain HTTP on a TLS port", raw: get("/")},
	{name: "plain HTTP with a page", raw: "GET /x?y HTTP/1.1\r\nHost: second.example\r\n\r\n"},
	{name: "plain HTTP that is malformed", raw: "GET /x?y HTTP/1.1\r\nA : b\r\n\r\n"},
	{name: "plain nonsense", raw: "nonsense\r\n\r\n"},
}

// tlsChoiceConf chooses cipher suites by the server's name. The version and the groups are those of all servers: nginx 1.22 has them of
// the default server, regardless of the name that the client sends.
const tlsChoiceConf = `http { access_log off; default_type text/plain; ssl_certificate first.pem; ssl_certificate_key first.key;
ssl_session_cache shared:SSL:1m; ssl_session_timeout 10m; ssl_prefer_server_ciphers on; ssl_protocols TLSv1.2; ssl_ecdh_curve secp384r1;
server { listen {{LISTEN}} ssl; server_name default.example; return 200 "$ssl_protocol $ssl_curve $ssl_session_reused"; }
server { listen {{LISTEN}} ssl; server_name old.example; ssl_ciphers EECDH+AESGCM:!AES256; location / { return 200 "$ssl_cipher"; } }
server { listen {{LISTEN}} ssl; server_name named.example; ssl_session_tickets off;
  ssl_ciphers ECDHE-ECDSA-CHACHA20-POLY1305:DHE-RSA-AES128-GCM-SHA256; location / { return 200 "$ssl_cipher"; } } }
`

var tlsChoiceSteps = []step{
	{name: "default", sni: "default.example", raw: get("/")},
	{name: "kinds of suites", sni: "old.example", raw: "GET / HTTP/1.1\r\nHost: old.example\r\n\r\n"},
	{name: "a suite by name", sni: "named.example", raw: "GET / HTTP/1.1\r\nHost: named.example\r\n\r\n"},
}

// certificates are two self-signed ones with their keys.
func certificates() map[string]string {
	files := map[string]string{}
	for _, name := range []string{"first", "second"} {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			panic(err)
		}
		template := &x509.Certificate{
			SerialNumber: big.NewInt(1),
			Subject:      pkix.Name{CommonName: name + ".example"},
			DNSNames:     []string{name + ".example"},
			NotBefore:    time.Now().Add(-time.Hour),
			NotAfter:     time.Now().Add(time.Hour),
		}
		certificate, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
		if err != nil {
			panic(err)
		}
		der, err := x509.MarshalECPrivateKey(key)
		if err != nil {
			panic(err)
		}
		files[name+".pem"] = encode("CERTIFICATE", certificate)
		files[name+".key"] = encode("EC PRIVATE KEY", der)
	}
	return files
}

func encode(kind string, der []byte) string {
	var b bytes.Buffer
	_ = pem.Encode(&b, &pem.Block{Type: kind, Bytes: der})
	return b.String()
}
