package openssl_test

import (
	"crypto/tls"
	"slices"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/nginx/internal/engine/openssl"
)

func names(ids []uint16) string {
	var list []string
	for _, id := range ids {
		list = append(list, openssl.CipherName(id))
	}
	slices.Sort(list)
	return strings.Join(list, " ")
}

func TestCiphers(t *testing.T) {
	for _, c := range []struct{ list, want, missing string }{
		{"ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-GCM-SHA256", ""},
		{"ECDHE-RSA-AES128-GCM-SHA256:DHE-RSA-AES128-GCM-SHA256, DHE-RSA-CHACHA20-POLY1305", "ECDHE-RSA-AES128-GCM-SHA256", "DHE-RSA-AES128-GCM-SHA256 DHE-RSA-CHACHA20-POLY1305"},
		{"EECDH+AESGCM:!ECDSA", "ECDHE-RSA-AES128-GCM-SHA256 ECDHE-RSA-AES256-GCM-SHA384", ""},
		{"ECDHE+CHACHA20", "ECDHE-ECDSA-CHACHA20-POLY1305 ECDHE-RSA-CHACHA20-POLY1305", ""},
		{"HIGH:!aNULL:!MD5:!AES:@STRENGTH", "ECDHE-ECDSA-CHACHA20-POLY1305 ECDHE-RSA-CHACHA20-POLY1305", ""},
		{"!ECDHE:HIGH", "", ""},                     // "!" is for good, and the rest of HIGH has no forward secrecy
		{"ALL:-ECDHE:AES128-SHA", "AES128-SHA", ""}, // an insecure suite must be named
		{"RC4-SHA:!RC4", "", ""},
		{"AES256-SHA:+AES256-SHA", "AES256-SHA", ""},
		{"DHE:ECDHE-RSA-AES256-SHA", "ECDHE-RSA-AES256-SHA", ""},
	} {
		got := openssl.ParseCiphers(c.list)
		if names(got.IDs) != c.want || strings.Join(got.Missing, " ") != c.missing || !got.Matched || got.IDs == nil {
			t.Errorf("%s: %s, missing %v, %t", c.list, names(got.IDs), got.Missing, got.Matched)
		}
	}
	for _, list := range []string{"", "nonsense", "TLS_AES_128_GCM_SHA256", "!HIGH"} {
		if openssl.ParseCiphers(list).Matched {
			t.Errorf("%q has a known word", list)
		}
	}
}

// What is chosen by HIGH is what crypto/tls considers secure.
func TestHighIsSecure(t *testing.T) {
	got := openssl.ParseCiphers("HIGH").IDs
	for _, s := range tls.CipherSuites() {
		if slices.Contains(s.SupportedVersions, tls.VersionTLS12) != slices.Contains(got, s.ID) {
			t.Errorf("%s: chosen %t", s.Name, slices.Contains(got, s.ID))
		}
	}
	for _, s := range tls.InsecureCipherSuites() {
		if slices.Contains(got, s.ID) {
			t.Errorf("%s is chosen", s.Name)
		}
	}
}

func TestGroups(t *testing.T) {
	got := openssl.ParseGroups("X25519MLKEM768:X25519:P-256:X448:secp384r1")
	want := []tls.CurveID{tls.X25519MLKEM768, tls.X25519, tls.CurveP256, tls.CurveP384}
	if !slices.Equal(got.IDs, want) || strings.Join(got.Missing, " ") != "X448" || got.Unknown != "" {
		t.Errorf("%v", got)
	}
	if got := openssl.ParseGroups("prime256v1:nonsense"); got.Unknown != "nonsense" {
		t.Errorf("%v", got)
	}
}

func TestNames(t *testing.T) {
	if got := openssl.CipherName(tls.TLS_AES_128_GCM_SHA256); got != "TLS_AES_128_GCM_SHA256" {
		t.Error(got)
	}
	if got := openssl.CipherName(0x1a1a); got != "" {
		t.Error(got)
	}
	if got := openssl.GroupName(tls.CurveP256) + openssl.SignatureName(tls.PSSWithSHA256); got != "prime256v1rsa_pss_rsae_sha256" {
		t.Error(got)
	}
}
