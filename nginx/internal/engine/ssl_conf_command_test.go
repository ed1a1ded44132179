package engine_test

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine"
)

// Commands of OpenSSL that crypto/tls has something for win over directives, wherever they stand.
func TestConfCommands(t *testing.T) {
	cert, key := certificate(t, "a.test")
	otherCert, otherKey := certificate(t, "other")
	s := serve(t, map[string]string{"c": cert, "k": key, "oc": otherCert, "ok": otherKey, "nginx.conf": `events {} http { ssl_certificate c; ssl_certificate_key k;
		server { listen 443 ssl; ssl_conf_command Certificate oc; ssl_conf_command PrivateKey ok; ssl_conf_command MaxProtocol TLSv1.2;
			ssl_conf_command CipherString ECDHE-ECDSA-AES128-GCM-SHA256; ssl_conf_command Groups P-384; ssl_protocols TLSv1.2 TLSv1.3;
			return 200 "$ssl_protocol $ssl_cipher $ssl_curve"; }
		server { listen 444 ssl; ssl_session_tickets off; ssl_conf_command Options SessionTicket,KTLS; return 200 $ssl_session_reused; }
		server { listen 445 ssl; ssl_conf_command Options -SessionTicket; return 200 $ssl_session_reused; } }`})
	equal(t, "chosen", tlsGet(t, s.first, &tls.Config{}), "TLSv1.2 ECDHE-ECDSA-AES128-GCM-SHA256 secp384r1")
	equal(t, "certificate", handshake(s.first, "a.test"), "other")
	for port, want := range map[string]string{"444": "r", "445": "."} {
		config := &tls.Config{ClientSessionCache: tls.NewLRUClientSessionCache(0)}
		tlsGet(t, s.addrs["0.0.0.0:"+port], config)
		equal(t, "session at "+port, tlsGet(t, s.addrs["0.0.0.0:"+port], config), want)
	}
	for directive, want := range map[string]string{
		"ssl_conf_command MinProtocol nonsense":  `SSL_CONF_cmd("MinProtocol", "nonsense") failed`,
		"ssl_conf_command CipherString nonsense": `SSL_CONF_cmd("CipherString", "nonsense") failed`,
		"proxy_ssl_conf_command Groups nonsense": `SSL_CONF_cmd("Groups", "nonsense") failed`,
		"proxy_ssl_ciphers nonsense":             `SSL_CTX_set_cipher_list("nonsense") failed`,
	} {
		if _, err := load(t, map[string]string{"nginx.conf": "events {} http { server { " + directive + "; } }"}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", directive, err)
		}
	}
}

// A proxy's connections have its commands and cipher suites as well.
func TestProxyConfCommands(t *testing.T) {
	up := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-TLS", tls.VersionName(r.TLS.Version)+" "+tls.CipherSuiteName(r.TLS.CipherSuite)+" "+r.TLS.PeerCertificates[0].Subject.CommonName)
	}))
	up.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	up.StartTLS()
	defer up.Close()
	cert, key := certificate(t, "a.test")
	otherCert, otherKey := certificate(t, "other")
	s := serve(t, map[string]string{"c": cert, "k": key, "oc": otherCert, "ok": otherKey, "nginx.conf": strings.ReplaceAll(`events {} http { server {
		proxy_ssl_certificate c; proxy_ssl_certificate_key k; proxy_ssl_protocols TLSv1.2; proxy_ssl_ciphers ECDHE-RSA-AES256-GCM-SHA384;
		location / { proxy_pass https://UP; }
		location /command { proxy_ssl_conf_command Certificate oc; proxy_ssl_conf_command PrivateKey ok; proxy_ssl_conf_command CipherString ECDHE-RSA-CHACHA20-POLY1305; proxy_pass https://UP; } } }`,
		"UP", up.Listener.Addr().String())})
	equal(t, "directives", s.get("/").Header.Get("X-TLS"), "TLS 1.2 TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384 a.test")
	equal(t, "commands", s.get("/command").Header.Get("X-TLS"), "TLS 1.2 TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256 other")
}

// What crypto/tls has nothing for is named at load.
func TestWhatIsNotFollowedOfTLS(t *testing.T) {
	for directive, want := range map[string]string{
		"ssl_conf_command Options -ServerPreference": "crypto/tls orders the cipher suites itself",
		"ssl_conf_command Options KTLS":              "it is OpenSSL's",
		"ssl_conf_command Ciphersuites x":            "it is OpenSSL's",
		"ssl_conf_command Options SessionTicket":     "",
		"ssl_ciphers HIGH:DHE-RSA-AES128-SHA":        "crypto/tls has no DHE-RSA-AES128-SHA",
		"ssl_ciphers DHE-RSA-AES128-SHA":             "crypto/tls has none of these: TLS 1.3 alone is possible",
		"ssl_ciphers HIGH:!aNULL:!MD5":               "",
		"ssl_ecdh_curve X25519:X448":                 "crypto/tls has no X448",
		"ssl_ecdh_curve X448":                        "crypto/tls has none of these: it chooses",
		"ssl_ecdh_curve auto":                        "",
		"ssl_protocols SSLv3 TLSv1.2":                "crypto/tls has no SSLv3",
		"ssl_protocols TLSv1.1 TLSv1.3":              "crypto/tls does not leave out TLSv1.2",
		"ssl_protocols TLSv1.2 TLSv1.3":              "",
	} {
		s, err := load(t, map[string]string{"nginx.conf": "events {} http { server { " + directive + "; } }"})
		if err != nil {
			t.Errorf("%s: %v", directive, err)
			continue
		}
		got := ""
		for _, n := range engine.Notes(engine.LoadOptions{Prefix: s.dir, File: "nginx.conf"}) {
			if n.Class == conf.Passed {
				got = n.Reason
			}
		}
		equal(t, directive, got, want)
	}
}
