package ocsp_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/culvert-go/culvert/nginx/internal/engine/ocsp"
	xocsp "golang.org/x/crypto/ocsp"
)

// authority is a certificate with its key.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// issue creates a certificate, which is signed by itself if by is nil.
func issue(t *testing.T, by *authority, serial int64, usage ...x509.ExtKeyUsage) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: by == nil, BasicConstraintsValid: true, ExtKeyUsage: usage}
	a := &authority{template, key}
	if by == nil {
		by = a
	}
	der, err := x509.CreateCertificate(rand.Reader, template, by.cert, &key.PublicKey, by.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return a
}

// about returns a response by signer that names issuer by a hash function, as that of the certificate with leaf's serial number.
func about(t *testing.T, issuer *x509.Certificate, by crypto.Hash, signer, leaf *authority) []byte {
	t.Helper()
	raw, err := xocsp.CreateResponse(issuer, signer.cert, xocsp.Response{Status: xocsp.Good, SerialNumber: leaf.cert.SerialNumber, IssuerHash: by,
		ThisUpdate: time.Now().Add(-time.Hour), NextUpdate: time.Now().Add(time.Hour)}, signer.key)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// respond returns a response about a certificate, signed by signer, whose certificate it contains if embed is set.
func respond(t *testing.T, issuer, signer, about *authority, status int, next time.Time, embed bool) []byte {
	t.Helper()
	template := xocsp.Response{Status: status, SerialNumber: about.cert.SerialNumber, ThisUpdate: time.Now().Add(-time.Hour), NextUpdate: next, RevokedAt: time.Now()}
	if embed {
		template.Certificate = signer.cert
	}
	raw, err := xocsp.CreateResponse(issuer.cert, signer.cert, template, signer.key)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// With verify, only the issuer and those that it has allowed to may sign.
func TestCheck(t *testing.T) {
	root, stranger := issue(t, nil, 1), issue(t, nil, 1)
	leaf := issue(t, root, 2)
	delegate, other := issue(t, root, 3, x509.ExtKeyUsageOCSPSigning), issue(t, root, 4, x509.ExtKeyUsageServerAuth)
	renamed, rekeyed := *root.cert, *root.cert
	renamed.RawSubject, rekeyed.RawSubjectPublicKeyInfo = []byte("another name"), stranger.cert.RawSubjectPublicKeyInfo
	soon, past := time.Now().Add(time.Hour), time.Now().Add(-time.Minute)
	for _, c := range []struct {
		what              string
		raw               []byte
		verified, lenient bool
	}{
		{"by the issuer", respond(t, root, root, leaf, xocsp.Good, soon, false), true, true},
		{"by the issuer, with its certificate", respond(t, root, root, leaf, xocsp.Good, soon, true), true, true},
		{"by a delegate", respond(t, root, delegate, leaf, xocsp.Good, soon, true), true, true},
		{"by another certificate of the issuer's", respond(t, root, other, leaf, xocsp.Good, soon, true), false, true},
		{"by a stranger", respond(t, root, stranger, leaf, xocsp.Good, soon, true), false, true},
		{"by a stranger, without its certificate", respond(t, root, stranger, leaf, xocsp.Good, soon, false), false, false},
		{"about another certificate", respond(t, root, root, other, xocsp.Good, soon, false), false, false},
		{"by SHA-256", about(t, root.cert, crypto.SHA256, root, leaf), true, true},
		{"by SHA-512", about(t, root.cert, crypto.SHA512, root, leaf), true, true},
		{"about the same serial number of another name", about(t, &renamed, crypto.SHA1, root, leaf), false, false},
		{"about that of another key", about(t, &rekeyed, crypto.SHA1, root, leaf), false, false},
		{"too old", respond(t, root, root, leaf, xocsp.Good, past, false), false, false},
		{"no response", []byte("x"), false, false},
	} {
		if _, err := ocsp.Check(c.raw, leaf.cert, root.cert, true); (err == nil) != c.verified {
			t.Errorf("%s, verified: %v", c.what, err)
		}
		if _, err := ocsp.Check(c.raw, leaf.cert, root.cert, false); (err == nil) != c.lenient {
			t.Errorf("%s: %v", c.what, err)
		}
	}
	if ocsp.CheckFile(respond(t, root, root, leaf, xocsp.Good, soon, false)) != nil || ocsp.CheckFile([]byte("x")) == nil {
		t.Error("CheckFile")
	}
}

// A handshake has the last response. What it lacks is requested for the next one, unless the certificate is revoked.
func TestStapler(t *testing.T) {
	root := issue(t, nil, 1)
	leaf, revoked := issue(t, root, 2), issue(t, root, 3)
	soon := time.Now().Add(time.Hour)
	good := respond(t, root, root, leaf, xocsp.Good, soon, false)
	responder := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := url.PathUnescape(strings.TrimPrefix(r.URL.EscapedPath(), "/ca/"))
		if err != nil {
			t.Error(err)
		}
		der, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			t.Error(err)
		}
		request, err := xocsp.ParseRequest(der)
		switch {
		case err != nil:
			t.Error(err)
		case request.SerialNumber.Cmp(leaf.cert.SerialNumber) == 0:
			w.Write(good)
		default:
			w.Write(respond(t, root, root, revoked, xocsp.Revoked, soon, false))
		}
	}))
	defer responder.Close()
	s := &ocsp.Stapler{Cert: leaf.cert, Issuer: root.cert, Responder: responder.URL + "/ca/", Verify: true, OnError: func(err error) { t.Error(err) }}
	if s.Staple() != nil {
		t.Error("a response before any was requested")
	}
	s.Wait()
	if !bytes.Equal(s.Staple(), good) {
		t.Error("no response")
	}
	s.Close()
	errs := make(chan error, 1)
	s = &ocsp.Stapler{Cert: revoked.cert, Issuer: root.cert, Responder: responder.URL + "/ca", OnError: func(err error) { errs <- err }}
	s.Staple()
	if err := <-errs; !strings.Contains(err.Error(), `"revoked"`) {
		t.Error(err)
	}
	s.Wait()
	if s.Staple() != nil {
		t.Error("a response that says that the certificate is revoked")
	}
	s.Close()
}

// Close ends a request that gets no response.
func TestCloseStapler(t *testing.T) {
	root := issue(t, nil, 1)
	arrived := make(chan struct{})
	responder := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-r.Context().Done()
	}))
	defer responder.Close()
	s := &ocsp.Stapler{Cert: issue(t, root, 2).cert, Issuer: root.cert, Responder: responder.URL, OnError: func(err error) { t.Error(err) }}
	s.Staple()
	<-arrived
	s.Close()
	s.Staple()
	s.Wait()
}

// Each certificate below the root is checked, or the client's alone. What a response says is kept if there is a cache.
func TestChecker(t *testing.T) {
	root := issue(t, nil, 1)
	middle := issue(t, root, 2)
	leaf := issue(t, middle, 3)
	chain := []*x509.Certificate{leaf.cert, middle.cert, root.cert}
	soon := time.Now().Add(time.Hour)
	status := map[string]int{}
	requests := 0
	responder := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests++
		text, _ := url.PathUnescape(strings.TrimPrefix(r.URL.EscapedPath(), "/"))
		der, _ := base64.StdEncoding.DecodeString(text)
		request, err := xocsp.ParseRequest(der)
		if err != nil {
			t.Error(err)
			return
		}
		for name, pair := range map[string][2]*authority{"leaf": {leaf, middle}, "middle": {middle, root}} {
			if what, known := status[name]; known && request.SerialNumber.Cmp(pair[0].cert.SerialNumber) == 0 {
				w.Write(respond(t, pair[1], pair[1], pair[0], what, soon, false))
			}
		}
	}))
	defer responder.Close()
	for _, c := range []struct {
		what   string
		status map[string]int
		leaf   bool
		want   error
	}{
		{"both good", map[string]int{"leaf": xocsp.Good, "middle": xocsp.Good}, false, nil},
		{"the middle revoked", map[string]int{"leaf": xocsp.Good, "middle": xocsp.Revoked}, false, ocsp.ErrRevoked},
		{"the middle revoked, which is not checked", map[string]int{"leaf": xocsp.Good, "middle": xocsp.Revoked}, true, nil},
		{"the leaf revoked", map[string]int{"leaf": xocsp.Revoked}, true, ocsp.ErrRevoked},
		{"the leaf not known", map[string]int{"leaf": xocsp.Unknown}, true, ocsp.ErrFailed},
		{"no response", nil, true, ocsp.ErrFailed},
	} {
		status = c.status
		logged := ""
		checker := &ocsp.Checker{Responder: responder.URL, Leaf: c.leaf}
		if err := checker.Check(t.Context(), chain, func(text string) { logged = text }); err != c.want {
			t.Errorf("%s: %v (%s)", c.what, err, logged)
		}
	}
	if err := (&ocsp.Checker{Leaf: true}).Check(t.Context(), chain, func(string) {}); err != ocsp.ErrFailed {
		t.Errorf("without a responder: %v", err)
	}
	requests, status = 0, map[string]int{"leaf": xocsp.Good, "middle": xocsp.Good}
	cached := &ocsp.Checker{Responder: responder.URL, Cache: ocsp.NewCache(8)}
	for range 3 {
		if err := cached.Check(t.Context(), chain, func(text string) { t.Error(text) }); err != nil {
			t.Error(err)
		}
		status = nil
	}
	if requests != 2 {
		t.Errorf("%d requests", requests)
	}
	if err := (&ocsp.Checker{}).Check(t.Context(), chain[2:], func(string) {}); err != nil {
		t.Errorf("a root: %v", err)
	}
}
