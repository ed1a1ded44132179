package engine

import (
	"crypto/tls"
	"slices"
	"strings"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/openssl"
)

func sslProtocols(_ *compiler, l *level, d *conf.Directive) (err error) {
	s := sslSlot.edit(l)
	s.min, s.max, err = tlsVersions(d)
	return err
}

var versionNames = map[string]uint16{
	"SSLv2": 0, "SSLv3": 0, // older than anything that is supported
	"TLSv1": tls.VersionTLS10, "TLSv1.1": tls.VersionTLS11, "TLSv1.2": tls.VersionTLS12, "TLSv1.3": tls.VersionTLS13,
}

// tlsVersions parses the names of protocols; 0 is Go's choice.
func tlsVersions(d *conf.Directive) (least, most uint16, err error) {
	for _, name := range d.Args {
		v, ok := versionNames[name]
		if !ok {
			return 0, 0, d.Errorf("invalid value \"%s\"", name)
		}
		if v == 0 {
			continue
		}
		if least == 0 || v < least {
			least = v
		}
		most = max(most, v)
	}
	return least, most, nil
}

// missingVersions names the versions that crypto/tls does not have, or cannot leave out.
func missingVersions(d *conf.Directive) string {
	for _, name := range []string{"SSLv2", "SSLv3"} {
		if slices.Contains(d.Args, name) {
			return "crypto/tls has no " + name
		}
	}
	least, most, err := tlsVersions(d)
	if err != nil {
		return ""
	}
	for _, name := range []string{"TLSv1.1", "TLSv1.2"} {
		if v := versionNames[name]; least < v && v < most && !slices.Contains(d.Args, name) {
			return "crypto/tls does not leave out " + name
		}
	}
	return ""
}

// sslCiphers compiles "ssl_ciphers list".
func sslCiphers(_ *compiler, l *level, d *conf.Directive) error {
	list := openssl.ParseCiphers(d.Args[0])
	if !list.Matched {
		return d.Errorf("SSL_CTX_set_cipher_list(\"%s\") failed (no cipher match)", d.Args[0])
	}
	sslSlot.edit(l).ciphers = list.IDs
	return nil
}

// missingCiphers names the suites that crypto/tls does not have.
func missingCiphers(d *conf.Directive) string {
	list := openssl.ParseCiphers(d.Args[0])
	switch {
	case len(list.IDs) == 0:
		return "crypto/tls has none of these: TLS 1.3 alone is possible"
	case len(list.Missing) > 0:
		return "crypto/tls has no " + strings.Join(list.Missing, ", ")
	}
	return ""
}

// sslCurves compiles "ssl_ecdh_curve auto|group[:group ...]".
func sslCurves(_ *compiler, l *level, d *conf.Directive) error {
	s := sslSlot.edit(l)
	if s.curves = nil; d.Args[0] == "auto" {
		return nil
	}
	list := openssl.ParseGroups(d.Args[0])
	if list.Unknown != "" {
		return d.Errorf("SSL_CTX_set1_curves_list(\"%s\") failed", d.Args[0])
	}
	s.curves = list.IDs
	return nil
}

// missingGroups names the groups that crypto/tls does not have.
func missingGroups(d *conf.Directive) string {
	list := openssl.ParseGroups(d.Args[0])
	switch {
	case d.Args[0] == "auto" || len(list.Missing) == 0:
		return ""
	case len(list.IDs) == 0:
		return "crypto/tls has none of these: it chooses"
	}
	return "crypto/tls has no " + strings.Join(list.Missing, ", ")
}
