package vars_test

import (
	"testing"

	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
)

func TestHeaderTLV(t *testing.T) {
	const tlvs = "\x01\x00\x02h2" + "\x02\x00\x03foo" + "\xae\x00\x01x" +
		"\x20\x00\x10\x01\x00\x00\x00\x07" + "\x21\x00\x02v1" + "\x22\x00\x03the" + "\x05\x00\x09cut"
	for name, want := range map[string]string{
		"alpn": "h2", "authority": "foo", "0x01": "h2", "0xae": "x", "0xAE": "x", "ssl_verify": "7", "ssl_version": "v1", "ssl_cn": "the", "ssl_0x22": "the",
		"ssl_cipher": "", "unique_id": "", "netns": "", "other": "", "0x": "", "0x100": "", "": "",
	} {
		if got, ok := vars.HeaderTLV(tlvs, name); got != want || ok != (want != "") {
			t.Errorf("%s: %q, %t", name, got, ok)
		}
	}
}

// No value is longer than all, regardless of what a proxy sends.
func FuzzHeaderTLV(f *testing.F) {
	f.Add("\x20\x00\x05\x01\x00\x00\x00\x07", "ssl_verify")
	f.Add("\x01\x00\x02h2", "0x01")
	f.Fuzz(func(t *testing.T, tlvs, name string) {
		if value, ok := vars.HeaderTLV(tlvs, name); len(value) > len(tlvs)+10 || !ok && value != "" {
			t.Fatalf("%q: %q, %t", tlvs, value, ok)
		}
	})
}
