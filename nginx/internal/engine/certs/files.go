package certs

import (
	"encoding/asn1"
	"encoding/pem"
	"os"
	"strings"
)

// Read returns the text of a file of ssl_certificate or ssl_certificate_key: name itself behind "data:".
func Read(name string) ([]byte, error) {
	if text, ok := strings.CutPrefix(name, "data:"); ok {
		return []byte(text), nil
	}
	return os.ReadFile(name)
}

// trusted returns certificates in PEM of which those that openssl calls "TRUSTED CERTIFICATE" have lost what it says about trust: it
// follows the certificate itself.
func trusted(text []byte) []byte {
	var plain []byte
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "TRUSTED CERTIFICATE" || block.Type == "X509 CERTIFICATE" {
			block = &pem.Block{Type: "CERTIFICATE", Bytes: firstElement(block.Bytes)}
		}
		plain = append(plain, pem.EncodeToMemory(block)...)
	}
	return plain
}

// firstElement returns the first element of DER, and der itself if it can't be parsed.
func firstElement(der []byte) []byte {
	var first asn1.RawValue
	if _, err := asn1.Unmarshal(der, &first); err != nil {
		return der
	}
	return first.FullBytes
}
