// Package openssl translates between OpenSSL's names of cipher suites, groups and signatures, which configurations and variables
// have, and crypto/tls.
package openssl

import (
	"crypto/tls"
	"strings"
)

// suites are OpenSSL's names of cipher suites before TLS 1.3. Those that crypto/tls does not have may be in the list of a client.
var suites = map[uint16]string{
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

	0x0033: "DHE-RSA-AES128-SHA",
	0x0039: "DHE-RSA-AES256-SHA",
	0x003d: "AES256-SHA256",
	0x0067: "DHE-RSA-AES128-SHA256",
	0x006b: "DHE-RSA-AES256-SHA256",
	0x009e: "DHE-RSA-AES128-GCM-SHA256",
	0x009f: "DHE-RSA-AES256-GCM-SHA384",
	0x00ff: "TLS_EMPTY_RENEGOTIATION_INFO_SCSV",
	0xc008: "ECDHE-ECDSA-DES-CBC3-SHA",
	0xc024: "ECDHE-ECDSA-AES256-SHA384",
	0xc028: "ECDHE-RSA-AES256-SHA384",
	0xccaa: "DHE-RSA-CHACHA20-POLY1305",
	0x1304: "TLS_AES_128_CCM_SHA256",
	0x1305: "TLS_AES_128_CCM_8_SHA256",
}

// CipherName returns OpenSSL's name of a cipher suite, "" if it is not known.
func CipherName(id uint16) string {
	if name, ok := suites[id]; ok {
		return name
	}
	if name := tls.CipherSuiteName(id); strings.HasPrefix(name, "TLS_") {
		return name // of TLS 1.3
	}
	return ""
}

// groups are OpenSSL's names of the groups of a key exchange.
var groups = map[tls.CurveID]string{
	tls.CurveP256:      "prime256v1",
	tls.CurveP384:      "secp384r1",
	tls.CurveP521:      "secp521r1",
	tls.X25519:         "X25519",
	tls.X25519MLKEM768: "X25519MLKEM768",

	tls.SecP256r1MLKEM768:  "SecP256r1MLKEM768",
	tls.SecP384r1MLKEM1024: "SecP384r1MLKEM1024",

	0x0016: "secp256k1",
	0x001a: "brainpoolP256r1",
	0x001b: "brainpoolP384r1",
	0x001c: "brainpoolP512r1",
	0x001e: "X448",
	0x0100: "ffdhe2048",
	0x0101: "ffdhe3072",
	0x0102: "ffdhe4096",
	0x0103: "ffdhe6144",
	0x0104: "ffdhe8192",
}

// GroupName returns OpenSSL's name of a group, "" if it is not known.
func GroupName(id tls.CurveID) string { return groups[id] }

// signatures are the names that the standards of TLS 1.3 give to signatures.
var signatures = map[tls.SignatureScheme]string{
	tls.PKCS1WithSHA1:          "rsa_pkcs1_sha1",
	tls.PKCS1WithSHA256:        "rsa_pkcs1_sha256",
	tls.PKCS1WithSHA384:        "rsa_pkcs1_sha384",
	tls.PKCS1WithSHA512:        "rsa_pkcs1_sha512",
	tls.PSSWithSHA256:          "rsa_pss_rsae_sha256",
	tls.PSSWithSHA384:          "rsa_pss_rsae_sha384",
	tls.PSSWithSHA512:          "rsa_pss_rsae_sha512",
	tls.ECDSAWithSHA1:          "ecdsa_sha1",
	tls.ECDSAWithP256AndSHA256: "ecdsa_secp256r1_sha256",
	tls.ECDSAWithP384AndSHA384: "ecdsa_secp384r1_sha384",
	tls.ECDSAWithP521AndSHA512: "ecdsa_secp521r1_sha512",
	tls.Ed25519:                "ed25519",

	0x0808: "ed448",
	0x0809: "rsa_pss_pss_sha256",
	0x080a: "rsa_pss_pss_sha384",
	0x080b: "rsa_pss_pss_sha512",
	0x0904: "mldsa44",
	0x0905: "mldsa65",
	0x0906: "mldsa87",
}

// SignatureName returns the name of a signature, "" if it is not known.
func SignatureName(id tls.SignatureScheme) string { return signatures[id] }
