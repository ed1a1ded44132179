package tickets_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"math/big"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/nginx/internal/engine/tickets"
)

// selfSigned returns a certificate that is valid when it is called.
func selfSigned(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: now.Add(-time.Hour), NotAfter: now.Add(1000 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// end is one end of a connection whose writes do not wait for the other end's reads: in a handshake both ends write at times.
type end struct {
	net.Conn // nil
	in, out  chan []byte
	rest     []byte
}

func connection() (a, b *end) {
	to, from := make(chan []byte, 64), make(chan []byte, 64)
	return &end{in: from, out: to}, &end{in: to, out: from}
}

func (e *end) Read(p []byte) (int, error) {
	if len(e.rest) == 0 {
		b, ok := <-e.in
		if !ok {
			return 0, io.EOF
		}
		e.rest = b
	}
	n := copy(p, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}

func (e *end) Write(p []byte) (int, error) {
	e.out <- bytes.Clone(p)
	return len(p), nil
}

func (e *end) Close() error {
	close(e.out)
	return nil
}

// client has the tickets that it was sent.
type client struct {
	t       *testing.T
	pair    tls.Certificate
	version uint16
	cache   tls.ClientSessionCache
}

func newClient(t *testing.T, version uint16) *client {
	return &client{t, selfSigned(t), version, tls.NewLRUClientSessionCache(0)}
}

// connect runs a handshake by a rule, and reports whether it resumed a session, of which it returns the ID.
func (c *client) connect(rule tickets.Rule, name string) (resumed bool, id string) {
	c.t.Helper()
	near, far := connection()
	defer near.Close()
	config := &tls.Config{Certificates: []tls.Certificate{c.pair}}
	handshake := rule.Begin(config, name)
	done := make(chan error, 1)
	go func() {
		defer far.Close()
		server := tls.Server(far, config)
		err := server.Handshake()
		if err == nil {
			_, err = server.Write([]byte("x"))
		}
		done <- err
	}()
	// The name that the session cache goes by is the same in each case: a client that offers a ticket elsewhere is what is tested.
	conn := tls.Client(near, &tls.Config{ServerName: "one", InsecureSkipVerify: true, ClientSessionCache: c.cache, MaxVersion: c.version, MinVersion: c.version})
	if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
		c.t.Fatal(err)
	}
	if err := <-done; err != nil {
		c.t.Fatal(err)
	}
	return conn.ConnectionState().DidResume, handshake.SessionID()
}

func versions(t *testing.T, f func(t *testing.T, version uint16)) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		t.Run(tls.VersionName(version), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { f(t, version) })
		})
	}
}

// A session is resumed with its ID within its time, in its context and for its name.
func TestResumption(t *testing.T) {
	versions(t, func(t *testing.T, version uint16) {
		c := newClient(t, version)
		rule := tickets.Rule{Keys: tickets.Rotating(time.Hour), Timeout: 5 * time.Minute}
		resumed, id := c.connect(rule, "one")
		if resumed || len(id) != 64 || strings.Trim(id, "0123456789abcdef") != "" {
			t.Fatalf("the first: %t, %q", resumed, id)
		}
		time.Sleep(4 * time.Minute)
		if resumed, again := c.connect(rule, "ONE"); !resumed || again != id {
			t.Errorf("resumed %t, %q, want %q", resumed, again, id)
		}
		other := rule
		other.Context[0]++
		if resumed, _ := c.connect(other, "one"); resumed {
			t.Error("resumed in another context")
		}
		c.connect(rule, "one")
		if resumed, _ := c.connect(rule, "two"); resumed {
			t.Error("resumed for another name")
		}
		c.connect(rule, "one")
		time.Sleep(6 * time.Minute)
		if resumed, _ := c.connect(rule, "one"); resumed {
			t.Error("resumed behind its time")
		}
	})
}

// In TLS 1.2, a session that is resumed has the secret that it began with: it does not get older than its time by that.
func TestResumptionDoesNotProlong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, tls.VersionTLS12)
		rule := tickets.Rule{Keys: tickets.Rotating(time.Hour), Timeout: 5 * time.Minute}
		c.connect(rule, "one")
		for i := range 2 {
			time.Sleep(3 * time.Minute)
			if resumed, _ := c.connect(rule, "one"); resumed != (i == 0) {
				t.Errorf("after %d times 3 minutes: resumed %t", i+1, resumed)
			}
		}
	})
}

// A key encrypts for a period and decrypts for another.
func TestRotation(t *testing.T) {
	versions(t, func(t *testing.T, version uint16) {
		rule := tickets.Rule{Keys: tickets.Rotating(time.Minute), Timeout: time.Hour}
		early, late := newClient(t, version), newClient(t, version)
		early.connect(rule, "one")
		time.Sleep(59 * time.Second)
		late.connect(rule, "one")
		time.Sleep(30 * time.Second)
		if resumed, _ := early.connect(rule, "one"); !resumed {
			t.Error("the key before is not known")
		}
		time.Sleep(50 * time.Second)
		if resumed, _ := late.connect(rule, "one"); resumed {
			t.Error("the key before that is still known")
		}
	})
}

// The first file encrypts, the others decrypt: so are keys replaced without losing sessions.
func TestFiles(t *testing.T) {
	file := func(c string, n int) []byte { return []byte(strings.Repeat(c, n)) }
	rule := func(files ...[]byte) tickets.Rule {
		keys, _, err := tickets.FromFiles(files)
		if err != nil {
			t.Fatal(err)
		}
		return tickets.Rule{Keys: keys, Timeout: time.Hour}
	}
	versions(t, func(t *testing.T, version uint16) {
		c := newClient(t, version)
		c.connect(rule(file("1", 48)), "one")
		if resumed, _ := c.connect(rule(file("2", 80), file("1", 48)), "one"); !resumed {
			t.Error("the second file does not decrypt")
		}
		if resumed, _ := c.connect(rule(file("2", 80)), "one"); !resumed {
			t.Error("the first file did not encrypt")
		}
		if resumed, _ := c.connect(rule(file("1", 48)), "one"); resumed {
			t.Error("a file that is not there decrypts")
		}
		same := append(file("1", 16), file("2", 32)...) // the name of a key with another secret
		c.connect(rule(file("1", 48)), "one")
		if resumed, _ := c.connect(rule(same), "one"); resumed {
			t.Error("another secret decrypts")
		}
	})
	if _, i, err := tickets.FromFiles([][]byte{file("1", 48), file("1", 47)}); err != tickets.ErrSize || i != 1 {
		t.Errorf("a short file: %d, %v", i, err)
	}
}
