package vars

import (
	"crypto/x509/pkix"
	"encoding/asn1"
	"testing"
)

func TestLegacyName(t *testing.T) {
	n := pkix.Name{Country: []string{"DE"}, Organization: []string{"a/b"}, CommonName: "j\u00f6rg"}
	n.ExtraNames = []pkix.AttributeTypeAndValue{{Type: asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 1}, Value: "a@b.test"}, {Type: asn1.ObjectIdentifier{1, 2, 3}, Value: "x"}}
	raw, err := asn1.Marshal(n.ToRDNSequence())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := legacyName(raw), `/C=DE/O=a/b/CN=j\xC3\xB6rg/emailAddress=a@b.test/1.2.3=x`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := legacyName([]byte("nonsense")); got != "" {
		t.Errorf("of nonsense: %s", got)
	}
}
