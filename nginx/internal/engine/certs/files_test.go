package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// pairOf returns a self-signed certificate of a key, in PEM.
func pairOf(t testing.TB, key any, public any, name string) []byte {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(7), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageCRLSign | x509.KeyUsageCertSign, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// A wrong password that leaves a padding which looks right does not keep the right one from being tried.
func TestWrongPasswords(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	//lint:ignore SA1019 keys of this kind exist
	b, err := x509.EncryptPEMBlock(rand.Reader, "EC PRIVATE KEY", der, []byte("right"), x509.PEMCipher3DES)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for i := range 3000 { // of which some do, one in 256
		list = append(list, strconv.Itoa(i))
	}
	if _, err := Pair(pairOf(t, key, &key.PublicKey, "e"), pem.EncodeToMemory(b), append(list, "right")); err != nil {
		t.Error(err)
	}
}

// What openssl says about trust behind a certificate is left out.
func TestTrustedCertificate(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	plain := pairOf(t, key, &key.PublicKey, "t")
	b, _ := pem.Decode(plain)
	aux := pem.EncodeToMemory(&pem.Block{Type: "TRUSTED CERTIFICATE", Bytes: append(b.Bytes, 0x30, 0x02, 0x30, 0x00)})
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Pair(aux, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil); err != nil {
		t.Error(err)
	}
	file := filepath.Join(t.TempDir(), "c")
	if err := os.WriteFile(file, aux, 0o600); err != nil {
		t.Fatal(err)
	}
	if text, _, err := ReadRoots(file); err != nil || string(text) != string(plain) {
		t.Errorf("%v: %s", err, text)
	}
}

// The common name counts only without an alternative name.
func TestCommonName(t *testing.T) {
	of := func(common string, names ...string) *x509.Certificate {
		return &x509.Certificate{Subject: pkix.Name{CommonName: common}, DNSNames: names}
	}
	for _, c := range []struct {
		cert *x509.Certificate
		name string
		ok   bool
	}{
		{of("a.test"), "a.test", true}, {of("*.test"), "A.test", true}, {of("a.test"), "b.test", false}, {of("a.test", "b.test"), "a.test", false},
		{of("a.test", "b.test"), "b.test", true}, {of(""), "a.test", false}, {of("127.0.0.1"), "127.0.0.1", false}, {of("any"), "", true},
	} {
		if err := (&Verifier{Name: c.name}).verifyName(c.cert); (err == nil) != c.ok {
			t.Errorf("%q of %q %q: %v", c.name, c.cert.Subject.CommonName, c.cert.DNSNames, err)
		}
	}
}

// version1 returns a revocation list without a version, signed by key.
func version1(t testing.TB, key *ecdsa.PrivateKey, issuer *x509.Certificate, revoked ...int64) []byte {
	t.Helper()
	algorithm := pkix.AlgorithmIdentifier{Algorithm: asn1.ObjectIdentifier{1, 2, 840, 10045, 4, 3, 2}}
	tbs := tbsCertificateList{
		Algorithm: algorithm, Issuer: asn1.RawValue{FullBytes: issuer.RawSubject}, ThisUpdate: time.Now().Add(-time.Hour).UTC(), NextUpdate: time.Now().Add(time.Hour).UTC(),
	}
	for _, n := range revoked {
		tbs.Revoked = append(tbs.Revoked, revokedOfVersion1{big.NewInt(n), time.Now().UTC()})
	}
	der, err := asn1.Marshal(tbs)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(der)
	signature, err := ecdsa.SignASN1(rand.Reader, key, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	tbs.Raw = der
	list, err := asn1.Marshal(certificateList{tbs, algorithm, asn1.BitString{Bytes: signature, BitLength: len(signature) * 8}})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestVersion1(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	b, _ := pem.Decode(pairOf(t, key, &key.PublicKey, "root"))
	root, err := x509.ParseCertificate(b.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		revoked []int64
		want    error
	}{"none revoked": {nil, nil}, "another revoked": {[]int64{8}, nil}, "revoked": {[]int64{8, 7}, errRevoked}} {
		der := version1(t, key, root, c.revoked...)
		file := filepath.Join(t.TempDir(), "crl")
		if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "X509 CRL", Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		lists, err := ReadRevocations(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := lists.check([]*x509.Certificate{root}); err != c.want {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := parseList(append(der, 0)); err == nil {
			t.Errorf("%s: bytes follow it", name)
		}
		der[len(der)-1] ^= 1
		if list, err := parseList(der); err == nil && newRevocationList(list).fault(root, time.Now()) != errListSigned {
			t.Errorf("%s: the signature is wrong", name)
		}
	}
}

// FuzzParseList: a list is parsed as a whole or not at all.
func FuzzParseList(f *testing.F) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		f.Fatal(err)
	}
	b, _ := pem.Decode(pairOf(f, key, &key.PublicKey, "root"))
	root, err := x509.ParseCertificate(b.Bytes)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(version1(f, key, root, 1, 2))
	f.Add(version1(f, key, root))
	f.Fuzz(func(t *testing.T, der []byte) {
		list, err := parseList(der)
		if err != nil {
			return
		}
		if len(list.Raw) != len(der) || len(list.RawTBSRevocationList) == 0 || len(list.RawIssuer) == 0 {
			t.Fatalf("%d of %d bytes", len(list.Raw), len(der))
		}
		_ = newRevocationList(list).fault(root, time.Now())
	})
}
