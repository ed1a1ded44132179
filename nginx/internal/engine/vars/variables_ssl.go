package vars

import (
	"crypto/tls"
	"fmt"
)

// The variables of an encrypted connection; without one they have no value.
var sslVariables = map[string]Getter{
	"ssl_alpn_protocol":  ofTLS(func(s *tls.ConnectionState) string { return s.NegotiatedProtocol }),
	"ssl_cipher":         ofTLS(sslCipher),
	"ssl_curve":          ofTLS(sslCurve),
	"ssl_early_data":     none, // crypto/tls does not accept any
	"ssl_protocol":       ofTLS(sslProtocol),
	"ssl_server_name":    ofTLS(func(s *tls.ConnectionState) string { return s.ServerName }),
	"ssl_session_reused": ofTLS(sslSessionReused),
}

func ofTLS(get func(*tls.ConnectionState) string) Getter {
	return nonEmpty(func(r *Request) string {
		if r.tls() == nil {
			return ""
		}
		return get(r.tls())
	})
}

// tls returns the state of the client's connection, nil for cleartext.
func (r *Request) tls() *tls.ConnectionState {
	if r.HTTP == nil {
		return r.TLS
	}
	return r.HTTP.TLS
}

// cipherNames are OpenSSL's names of the suites before TLS 1.3, whose names are the same.
var cipherNames = map[uint16]string{
	tls.TLS_RSA_WITH_RC4_128_SHA:                      "RC4-SHA",
	tls.TLS_RSA_WITH_3DES_EDE_CBC_SHA:                 "DES-CBC3-SHA",
	tls.TLS_RSA_WITH_AES_128_CBC_SHA:                  "AES128-SHA",
	tls.TLS_RSA_WITH_AES_256_CBC_SHA:                  "AES256-SHA",
	tls.TLS_RSA_WITH_AES_128_CBC_SHA256:               "AES128-SHA256",
	tls.TLS_RSA_WITH_AES_128_GCM_SHA256:               "AES128-GCM-SHA256",
	tls.TLS_RSA_WITH_AES_256_GCM_SHA384:               "AES256-GCM-SHA384",
	tls.TLS_ECDHE_ECDSA_WITH_RC4_128_SHA:              "ECDHE-ECDSA-RC4-SHA",
	tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA:          "ECDHE-ECDSA-AES128-SHA",
	tls.TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA:          "ECDHE-ECDSA-AES256-SHA",
	tls.TLS_ECDHE_RSA_WITH_RC4_128_SHA:                "ECDHE-RSA-RC4-SHA",
	tls.TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA:           "ECDHE-RSA-DES-CBC3-SHA",
	tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA:            "ECDHE-RSA-AES128-SHA",
	tls.TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA:            "ECDHE-RSA-AES256-SHA",
	tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256:       "ECDHE-ECDSA-AES128-SHA256",
	tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256:         "ECDHE-RSA-AES128-SHA256",
	tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256:         "ECDHE-RSA-AES128-GCM-SHA256",
	tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256:       "ECDHE-ECDSA-AES128-GCM-SHA256",
	tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384:         "ECDHE-RSA-AES256-GCM-SHA384",
	tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384:       "ECDHE-ECDSA-AES256-GCM-SHA384",
	tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256:   "ECDHE-RSA-CHACHA20-POLY1305",
	tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256: "ECDHE-ECDSA-CHACHA20-POLY1305",
}

func sslCipher(s *tls.ConnectionState) string {
	if name, ok := cipherNames[s.CipherSuite]; ok {
		return name
	}
	return tls.CipherSuiteName(s.CipherSuite)
}

// sslCurve returns OpenSSL's name of the key exchange's group.
func sslCurve(s *tls.ConnectionState) string {
	switch s.CurveID {
	case 0:
		return ""
	case tls.CurveP256:
		return "prime256v1"
	case tls.CurveP384:
		return "secp384r1"
	case tls.CurveP521:
		return "secp521r1"
	case tls.X25519, tls.X25519MLKEM768:
		return s.CurveID.String()
	}
	return fmt.Sprintf("0x%04x", uint16(s.CurveID))
}

// sslProtocol formats TLSv1.3 as nginx does, not "TLS 1.3". The first version is TLSv1.
func sslProtocol(s *tls.ConnectionState) string {
	if s.Version == tls.VersionTLS10 {
		return "TLSv1"
	}
	return "TLSv" + tls.VersionName(s.Version)[len("TLS "):]
}

func sslSessionReused(s *tls.ConnectionState) string {
	if s.DidResume {
		return "r"
	}
	return "."
}
