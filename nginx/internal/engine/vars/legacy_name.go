package vars

import (
	"crypto/x509/pkix"
	"encoding/asn1"
	"fmt"
	"strings"
)

// shortNames are OpenSSL's names of the attributes of a name.
var shortNames = map[string]string{
	"2.5.4.3": "CN", "2.5.4.4": "SN", "2.5.4.5": "serialNumber", "2.5.4.6": "C", "2.5.4.7": "L", "2.5.4.8": "ST", "2.5.4.9": "street",
	"2.5.4.10": "O", "2.5.4.11": "OU", "2.5.4.12": "title", "2.5.4.42": "GN", "2.5.4.43": "initials",
	"1.2.840.113549.1.9.1": "emailAddress", "0.9.2342.19200300.100.1.1": "UID", "0.9.2342.19200300.100.1.25": "DC",
}

// legacyName writes a name as X509_NAME_oneline does: its attributes in the certificate's order, each behind a slash. What is not
// printable ASCII is escaped, and slashes are not.
func legacyName(raw []byte) string {
	var name pkix.RDNSequence
	if _, err := asn1.Unmarshal(raw, &name); err != nil {
		return ""
	}
	var b strings.Builder
	for _, set := range name {
		for _, attribute := range set {
			key := attribute.Type.String()
			if short, ok := shortNames[key]; ok {
				key = short
			}
			b.WriteString("/" + key + "=")
			for _, c := range []byte(fmt.Sprint(attribute.Value)) {
				if c < ' ' || c > '~' {
					fmt.Fprintf(&b, `\x%02X`, c)
				} else {
					b.WriteByte(c)
				}
			}
		}
	}
	return b.String()
}
