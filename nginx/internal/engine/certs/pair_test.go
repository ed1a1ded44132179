package certs_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/nginx/internal/engine/certs"
)

// One key, which openssl has encrypted with the password "right": by AES-256, by Triple DES with HMAC-SHA1, and in the format of old.
var encryptedKeys = map[string]string{
	"aes256": `-----BEGIN ENCRYPTED PRIVATE KEY-----
MIHsMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAiUPd2lGteoYAICCAAw
DAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEEPtZl+s26UxKbkA4OfDaRNsEgZCk
XZzD7UVk9dHxdjrdAExLGCaTM3N8zV/XspR8hqGqR2bRy5H0zQUwLt0aEt7KiEXV
jP9rQyww0JEl9aGOkROBE72I54M2zzFfDhwNvjznMN9l0FUvF2PVqaGBgjlBT2J2
qnTyIkPJmZIS5QHKe3KePIEn/uqO8RJMAVyPACEs9oM6J9l2Pxx+BZSK6v3BMZA=
-----END ENCRYPTED PRIVATE KEY-----
`,
	"des3": `-----BEGIN ENCRYPTED PRIVATE KEY-----
MIHVMEAGCSqGSIb3DQEFDTAzMBsGCSqGSIb3DQEFDDAOBAg4OJqEP4yJ6gICCAAw
FAYIKoZIhvcNAwcECFvwnEwz2aQ2BIGQg/Xa3YxP4S/KlWa2UQ3lWwzOMqZoV7FX
RBjplpYoxrZTQL9QSkfzk1XAYfsOfe5ZVR49lTgZicDzZFvpthL5F2dWBCPQpV2Q
ruQ6cQlVeQP+lk5nzW7sGOjpKKV8WP7uToC5kTS10WrRWg5XOrjXUbLvOzp6RP2T
TRprK2Mvm27njDeJkYn48xV5llElhvcX
-----END ENCRYPTED PRIVATE KEY-----
`,
	"legacy": `-----BEGIN EC PRIVATE KEY-----
Proc-Type: 4,ENCRYPTED
DEK-Info: AES-192-CBC,9BF66254BD705C7261351B58D390E6FE

uCpes6nzMSclMkhg7xgxm6lUdbJNdEPoRbAAIk1I4zMhNUODLqBicITvjtdULy4K
byb8fJsC3odl2lemBZ76+ko0tBa59qnRpI10PvzpeU6eS8i5nXs1qV4EZg8Go5Lj
l1MHV7JOe8qrZCKXGkSN4s3tz1xGBqeVRFG/4wuUN4c=
-----END EC PRIVATE KEY-----
`,
}

const certificate = `-----BEGIN CERTIFICATE-----
MIIBcDCCARWgAwIBAgIUJGd9ZcBKH2X75Xflf/HnLrPNa28wCgYIKoZIzj0EAwIw
DDEKMAgGA1UEAwwBYTAgFw0yNjExMjgxNjE3MTdaGA8yMTA5MDExNzE2MTcxN1ow
DDEKMAgGA1UEAwwBYTBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABPBb2CXzKM36
bRRLg8KaYG3wDgxkPExAYFwkN6LdCl2q8YdSkuZ4Pue4e2IdnxNVc2ZR8xpWXP2b
QVrGcFjs6JOjUzBRMB0GA1UdDgQWBBQs3TXlb8LAzKuEwKozzhALk5V95zAfBgNV
HSMEGDAWgBQs3TXlb8LAzKuEwKozzhALk5V95zAPBgNVHRMBAf8EBTADAQH/MAoG
CCqGSM49BAMCA0kAMEYCIQCZnqWuiZPLy+nSUop/lPm4MfXRJSjUFLp/NoXFoHA1
bQIhALUynQ90Nkb7007u4c8pCsuTOfqIGNp2/NwjQevFE9Jx
-----END CERTIFICATE-----
`

func TestPairEncrypted(t *testing.T) {
	for name, key := range encryptedKeys {
		if pair, err := certs.Pair([]byte(certificate), []byte(key), []string{"wrong", "right"}); err != nil || pair.Leaf.Subject.CommonName != "a" {
			t.Errorf("%s: %v", name, err)
		}
		for _, passwords := range [][]string{nil, {""}, {"wrong", "Right"}} {
			if _, err := certs.Pair([]byte(certificate), []byte(key), passwords); err == nil || !strings.Contains(err.Error(), "no password") {
				t.Errorf("%s, with %q: %v", name, passwords, err)
			}
		}
	}
}

func TestReadPasswords(t *testing.T) {
	name := filepath.Join(t.TempDir(), "passwords")
	if err := os.WriteFile(name, []byte("one\r\n\ntwo words\nlast"), 0o600); err != nil {
		t.Fatal(err)
	}
	if list, err := certs.ReadPasswords(name); err != nil || !slices.Equal(list, []string{"one", "two words", "last"}) {
		t.Errorf("%q, %v", list, err)
	}
	if _, err := certs.ReadPasswords(name + "x"); err == nil || !strings.Contains(err.Error(), "(2: No such file or directory)") {
		t.Error(err)
	}
}

// A key that is cut or changed is an error.
func FuzzPair(f *testing.F) {
	for _, key := range encryptedKeys {
		f.Add(key)
		f.Add(key[:len(key)/2])
	}
	f.Fuzz(func(t *testing.T, key string) {
		_, _ = certs.Pair([]byte(certificate), []byte(key), []string{"right"})
	})
}
