package engine_test

import (
	"bufio"
	"crypto/tls"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// tlsGet requests "/" over TLS and returns the body, or the error of the handshake.
func tlsGet(t *testing.T, addr string, config *tls.Config) string {
	t.Helper()
	config.InsecureSkipVerify = true
	if config.ServerName == "" {
		config.ServerName = "a.test"
	}
	conn, err := tls.Dial("tcp", addr, config)
	if err != nil {
		return err.Error()
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: "+config.ServerName+"\r\nConnection: close\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// Sessions are resumed unless there is neither a cache nor a ticket, not at another server, and with the same ID.
func TestSessions(t *testing.T) {
	cert, key := certificate(t, "a.test")
	s := serve(t, map[string]string{"c": cert, "k": key, "nginx.conf": `events {} http { ssl_certificate c; ssl_certificate_key k;
		server { listen 443 ssl; server_name a.test; return 200 "$ssl_session_reused $ssl_session_id"; }
		server { listen 443 ssl; server_name b.test; return 200 "$ssl_session_reused $ssl_session_id"; }
		server { listen 444 ssl; ssl_session_cache shared:SSL:1m; ssl_session_tickets off; return 200 "$ssl_session_reused $ssl_session_id"; }
		server { listen 445 ssl; ssl_session_cache none; ssl_session_tickets off; return 200 "$ssl_session_reused $ssl_session_id"; } }`})
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		for port, resumed := range map[string]bool{"443": true, "444": true, "445": false} {
			config := &tls.Config{ClientSessionCache: tls.NewLRUClientSessionCache(0), MaxVersion: version}
			first := tlsGet(t, s.addrs["0.0.0.0:"+port], config)
			second := tlsGet(t, s.addrs["0.0.0.0:"+port], config)
			want := ". "
			if resumed {
				if !regexp.MustCompile(`^\. [0-9a-f]{64}$`).MatchString(first) {
					t.Errorf("port %s: %q", port, first)
				}
				want = "r" + first[1:]
			}
			equal(t, "port "+port, second, want)
		}
	}
}

// Keys of files outlive a reload, in their order, and random keys do so as well. A session of other certificates is not resumed.
func TestSessionsOverReload(t *testing.T) {
	cert, key := certificate(t, "a.test")
	otherCert, otherKey := certificate(t, "a.test")
	files := func(directives string) map[string]string {
		return map[string]string{"c": cert, "k": key, "c2": otherCert, "k2": otherKey,
			"1": strings.Repeat("1", 48), "2": strings.Repeat("2", 80), "nginx.conf": `events {} http {
			server { listen 443 ssl; ` + directives + ` return 200 $ssl_session_reused; } }`}
	}
	const pair = "ssl_certificate c; ssl_certificate_key k;"
	for _, c := range []struct{ before, after, want string }{
		{pair, pair, "r"},
		{pair, "ssl_certificate c2; ssl_certificate_key k2;", "."},
		{pair + "ssl_session_cache shared:a:1m;", pair + "ssl_session_cache shared:a:1m;", "r"},
		{pair + "ssl_session_cache shared:a:1m;", pair + "ssl_session_cache shared:b:1m;", "."},
		{pair + "ssl_session_ticket_key 1;", pair + "ssl_session_ticket_key 2; ssl_session_ticket_key 1;", "r"},
		{pair + "ssl_session_ticket_key 1;", pair + "ssl_session_ticket_key 2;", "."},
		{pair + "ssl_session_ticket_key 1;", pair, "."},
	} {
		s := serve(t, files(c.before))
		cache := tls.NewLRUClientSessionCache(0)
		tlsGet(t, s.first, &tls.Config{ClientSessionCache: cache})
		after := reload(t, s, files(c.after))
		equal(t, c.before+" then "+c.after, tlsGet(t, after.first, &tls.Config{ClientSessionCache: cache}), c.want)
	}
}

// What a configuration says of cipher suites and groups is followed, and the variables have what the client has offered.
func TestCiphersAndGroups(t *testing.T) {
	cert, key := certificate(t, "a.test")
	s := serve(t, map[string]string{"c": cert, "k": key, "nginx.conf": `events {} http { ssl_certificate c; ssl_certificate_key k;
		server { listen 443 ssl; server_name a.test; ssl_protocols TLSv1.2; ssl_ciphers EECDH+AESGCM:!AES256; ssl_ecdh_curve secp384r1:X448;
			return 200 "$ssl_cipher $ssl_ciphers $ssl_curve $ssl_curves $ssl_sigalgs"; }
		server { listen 443 ssl; server_name b.test; ssl_ciphers AES128-SHA; ssl_protocols TLSv1.2; return 200; } }`})
	got := tlsGet(t, s.first, &tls.Config{CurvePreferences: []tls.CurveID{tls.CurveP256, tls.CurveP384},
		CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256}})
	fields := strings.Fields(got)
	if len(fields) != 5 {
		t.Fatal(got)
	}
	equal(t, "$ssl_cipher", fields[0], "ECDHE-ECDSA-AES128-GCM-SHA256")
	if !strings.Contains(fields[1], "ECDHE-ECDSA-AES256-GCM-SHA384:") && !strings.Contains(fields[1], ":ECDHE-ECDSA-AES256-GCM-SHA384") {
		t.Errorf("$ssl_ciphers is %s", fields[1])
	}
	equal(t, "$ssl_curve", fields[2], "secp384r1")
	equal(t, "$ssl_curves", fields[3], "prime256v1:secp384r1")
	if !strings.Contains(fields[4], "rsa_pss_rsae_sha256:") {
		t.Errorf("$ssl_sigalgs is %s", fields[4])
	}
	if got := tlsGet(t, s.first, &tls.Config{ServerName: "b.test"}); !strings.Contains(got, "handshake failure") {
		t.Errorf("a client without the server's only suite: %s", got)
	}
	for directive, want := range map[string]string{
		"ssl_ciphers nonsense":                          `SSL_CTX_set_cipher_list("nonsense") failed`,
		"ssl_ecdh_curve nonsense":                       `SSL_CTX_set1_curves_list("nonsense") failed`,
		"ssl_session_cache shared:a:8k":                 `session cache "shared:a:8k" is too small`,
		"ssl_session_cache some":                        `invalid session cache "some"`,
		"ssl_session_ticket_key c":                      "must be 48 or 80 bytes",
		"ssl_session_ticket_key none":                   `none" failed (2: No such file or directory)`,
		"ssl_certificate_cache valid=1s":                `"ssl_certificate_cache" must have the "max" parameter`,
		"ssl_certificate_cache max=0":                   `invalid parameter "max=0"`,
		"proxy_ssl_certificate_cache some":              `invalid parameter "some"`,
		"ssl_ocsp some":                                 `invalid value "some"`,
		"ssl_ocsp_responder https://x.test/":            `invalid URL prefix in OCSP responder "https://x.test/"`,
		"ssl_ocsp_cache shared:a:8k":                    `OCSP cache "shared:a:8k" is too small`,
		"ssl_ocsp_cache some":                           `invalid OCSP cache "some"`,
		"ssl_ocsp on; ssl_verify_client optional_no_ca": `"ssl_ocsp" is incompatible with "ssl_verify_client optional_no_ca"`,
		"ssl_stapling on; ssl_stapling_file c":          "d2i_OCSP_RESPONSE_bio",
	} {
		_, err := load(t, map[string]string{"c": cert, "k": key, "nginx.conf": "events {} http { server { listen 443 ssl; ssl_certificate c; ssl_certificate_key k; " + directive + "; } }"})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", directive, err)
		}
	}
}
