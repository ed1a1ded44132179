package acme

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/crypto/acme"
)

// selfSigned returns a certificate of names, valid from now for a time.
func selfSigned(t *testing.T, now time.Time, life time.Duration, names ...string) *Certificate {
	t.Helper()
	key, err := DefaultKey.generate()
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: names, NotBefore: now, NotAfter: now.Add(life)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	c, err := newCertificate([][]byte{der}, key, names, now)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Keys of each type are kept in PEM.
func TestKeys(t *testing.T) {
	for _, name := range []string{"ecdsa", "ecdsa:256", "ecdsa:384", "ecdsa:521", "rsa", "rsa:3072"} {
		kind, ok := ParseKeyType(name)
		if !ok {
			t.Fatal(name)
		}
		key, err := kind.generate()
		if err != nil {
			t.Fatal(err)
		}
		text, err := encodeKey(key)
		if err != nil {
			t.Fatal(err)
		}
		back, err := ParseKey(append([]byte("text\n"), text...))
		if err != nil || !back.Public().(interface{ Equal(crypto.PublicKey) bool }).Equal(key.Public()) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"", "dsa", "rsa:1024", "ecdsa:"} {
		if _, ok := ParseKeyType(name); ok {
			t.Errorf("%q is a type", name)
		}
	}
	if _, err := ParseKey([]byte("nothing")); err == nil {
		t.Error("a text is a key")
	}
}

// A certificate must be one of its names, of its key, and valid.
func TestParseCertificate(t *testing.T) {
	now := time.Now().Truncate(time.Second)
	c, other := selfSigned(t, now, time.Hour, "a.example"), selfSigned(t, now, time.Hour, "a.example")
	if _, err := parseCertificate(c.text(), c.text(), []string{"a.example"}, now); err != nil {
		t.Error(err)
	}
	if got, want := c.renewal(), now.Add(40*time.Minute); !got.Equal(want) {
		t.Errorf("renewed at %v, want %v", got, want)
	}
	for what, err := range map[string]error{
		"another name": func() error { _, err := parseCertificate(c.text(), c.text(), []string{"b.example"}, now); return err }(),
		"another key":  func() error { _, err := parseCertificate(c.text(), other.text(), nil, now); return err }(),
		"expired":      func() error { _, err := parseCertificate(c.text(), c.text(), nil, now.Add(2*time.Hour)); return err }(),
	} {
		if err == nil {
			t.Error(what)
		}
	}
}

// Files are their owner's alone, and replaced at once.
func TestFolder(t *testing.T) {
	f := folder(filepath.Join(t.TempDir(), "a", "b"))
	if b, err := f.read("x"); b != nil || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	for _, text := range []string{"one", "two"} {
		if err := f.write("x", []byte(text)); err != nil {
			t.Fatal(err)
		}
		if b, err := f.read("x"); string(b) != text || err != nil {
			t.Errorf("%q, %v", b, err)
		}
	}
	for name, want := range map[string]os.FileMode{"": 0o700, "x": 0o600} {
		if info, err := os.Stat(filepath.Join(string(f), name)); err != nil || info.Mode().Perm() != want {
			t.Errorf("%q: %v, %v", name, info.Mode(), err)
		}
	}
	if list, _ := os.ReadDir(string(f)); len(list) != 1 {
		t.Errorf("%v", list)
	}
	if err := folder("").write("x", nil); err != nil {
		t.Error(err)
	}
}

// The name of an order's file can't leave the folder, and is another one for another order.
func TestFileOf(t *testing.T) {
	i := &Issuer{Name: "i", URI: "https://a"}
	seen := map[string]bool{}
	for _, o := range []*Order{
		{Issuer: i, Names: []string{"../../etc/x"}}, {Issuer: i, Names: []string{"a.example"}}, {Issuer: i, Names: []string{"a.example", "b.example"}},
		{Issuer: i, Names: []string{"a.example"}, Key: "rsa:2048"}, {Issuer: &Issuer{Name: "j", URI: "https://a"}, Names: []string{"a.example"}},
	} {
		name := fileOf(o)
		if seen[name] || name != filepath.Base(name) || strings.HasPrefix(name, ".") {
			t.Errorf("%s", name)
		}
		seen[name] = true
	}
}

// The pauses grow up to six hours, and are as long as the authority says.
func TestPause(t *testing.T) {
	for failures, want := range map[int]time.Duration{0: time.Minute, 1: 2 * time.Minute, 8: 256 * time.Minute, 9: lastPause, 1000: lastPause} {
		if got := pause(failures, nil); got != want {
			t.Errorf("%d: %v, want %v", failures, got, want)
		}
	}
	limited := &acme.Error{StatusCode: http.StatusTooManyRequests, ProblemType: "urn:ietf:params:acme:error:rateLimited", Header: http.Header{"Retry-After": {"3600"}}}
	if got := pause(0, limited); got != time.Hour {
		t.Error(got)
	}
}

// The next certificate is not requested at once, regardless of the times of the last one.
func TestPauseBehindCertificates(t *testing.T) {
	now := time.Now().Truncate(time.Second)
	served := func(j *job, age, life time.Duration, fresh bool) time.Duration {
		j.served(selfSigned(t, now.Add(-age), life, "a.example"), fresh, now)
		return j.due.Sub(now)
	}
	const hour = time.Hour
	for _, c := range []struct {
		what      string
		age, life time.Duration
		least     time.Duration
		most      time.Duration
	}{
		{"usual", 0, 90 * hour, 60 * hour, 65 * hour},
		{"ten seconds", 0, 12 * time.Second, 8 * time.Second, 9 * time.Second},
		{"nearly due", 59 * time.Minute, hour * 3 / 2, time.Minute, 6 * time.Minute},
		{"a short life, nearly due", 5 * time.Second, 9 * time.Second, 3 * time.Second, 3 * time.Second},
		{"a second", 0, time.Second, time.Second, time.Second},
	} {
		if got := served(new(job), c.age, c.life, true); got < c.least || got > c.most {
			t.Errorf("%s: %v", c.what, got)
		}
	}
	j := &job{failures: 3}
	for i, want := range []time.Duration{1, 2, 4, 8} {
		if got := served(j, 3*hour, 4*hour, true); got != want*time.Minute || j.failures != 0 {
			t.Errorf("overdue certificate %d: %v", i, got)
		}
	}
	served(j, 0, 4*hour, true)
	if got := served(j, 3*hour, 4*hour, true); got != time.Minute {
		t.Errorf("behind one that is not: %v", got)
	}
	if got := served(new(job), hour*5/2, 4*hour, false); got < hour/6-time.Second {
		t.Errorf("another configuration's: %v", got)
	}
}

// A challenge is responded to until it is over, and only to a handshake that is one.
func TestChallenges(t *testing.T) {
	var s Store
	forget := s.respond(ChallengePath+"token", "content")
	if s.Response(ChallengePath+"token") != "content" || s.Response(ChallengePath+"other") != "" || s.Response("/token") != "" {
		t.Error("challenge of HTTP")
	}
	forget()
	if s.Response(ChallengePath+"token") != "" {
		t.Error("not forgotten")
	}
	forget = s.present("a.example", new(tls.Certificate))
	for _, tt := range []struct {
		name   string
		protos []string
		want   bool
	}{{"A.example", []string{"acme-tls/1"}, true}, {"a.example", []string{"acme-tls/1", "h2"}, false}, {"a.example", nil, false}, {"b.example", []string{"acme-tls/1"}, false}} {
		if got := s.ALPN(&tls.ClientHelloInfo{ServerName: tt.name, SupportedProtos: tt.protos}) != nil; got != tt.want {
			t.Errorf("%v: %t", tt, got)
		}
	}
	forget()
	if s.ALPN(&tls.ClientHelloInfo{ServerName: "a.example", SupportedProtos: []string{"acme-tls/1"}}) != nil {
		t.Error("not forgotten")
	}
}

// Certificates are requested again later from an authority that fails, and certificates that are valid are not renewed. A failure is typed.
func TestRun(t *testing.T) {
	requests := make(chan bool, 10)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests <- true
		http.Error(w, "no", http.StatusForbidden)
	}))
	defer s.Close()
	ctx, cancel := context.WithCancel(t.Context())
	i := &Issuer{Name: "i", URI: s.URL, Challenge: HTTP01, Folder: t.TempDir()}
	valid, missing := &Order{Issuer: i, Names: []string{"a.example"}}, &Order{Issuer: i, Names: []string{"b.example"}}
	if err := folder(i.Folder).write(fileOf(valid), selfSigned(t, time.Now().Add(-time.Second), time.Hour, "a.example").text()); err != nil {
		t.Fatal(err)
	}
	var store Store
	var failure *Error
	Run(ctx, &store, []*Order{valid, missing}, func(err *Error) { failure = err; cancel() }, func(*Order) { t.Error("issued") })
	var refused *acme.Error
	if failure == nil || failure.Step != "account" || failure.Names[0] != "b.example" || !errors.As(failure, &refused) || refused.StatusCode != http.StatusForbidden {
		t.Errorf("%v", failure)
	}
	if store.Certificate(valid) == nil || store.Certificate(missing) != nil {
		t.Error("certificates")
	}
	if len(requests) != 1 {
		t.Errorf("%d requests", len(requests))
	}
}

// A file that is no certificate is reported, and another one obtained.
func TestRunBrokenState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		i := &Issuer{Name: "i", URI: "http://127.0.0.1:0", Folder: t.TempDir(), KeyType: DefaultKey}
		o := &Order{Issuer: i, Names: []string{"a.example"}}
		if err := folder(i.Folder).write(fileOf(o), []byte("broken")); err != nil {
			t.Fatal(err)
		}
		var steps []string
		began := time.Now()
		Run(ctx, new(Store), []*Order{o}, func(err *Error) {
			if steps = append(steps, err.Step); len(steps) == 4 {
				cancel()
			}
		}, nil)
		if got := strings.Join(steps, " "); got != "state account account account" {
			t.Error(got)
		}
		if waited := time.Since(began); waited < 3*time.Minute || waited > 5*time.Minute { // 1 + 2, and the retries of x/crypto
			t.Errorf("waited %v", waited)
		}
	})
}

// Two configurations do not work on one issuer at the same time.
func TestLock(t *testing.T) {
	var s Store
	i := &Issuer{Name: "i"}
	unlock, ok := s.lock(t.Context(), i)
	if !ok {
		t.Fatal("not locked")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, ok := s.lock(ended, i); ok {
		t.Error("locked twice")
	}
	unlock()
	if _, ok := s.lock(t.Context(), i); !ok {
		t.Error("not unlocked")
	}
}
