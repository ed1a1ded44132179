package hello_test

import (
	"crypto/tls"
	"net"
	"slices"
	"testing"

	"github.com/culvert-go/culvert/nginx/internal/stream/hello"
)

// clientHello returns what crypto/tls sends first.
func clientHello(t testing.TB, c *tls.Config) []byte {
	t.Helper()
	near, far := net.Pipe()
	defer near.Close()
	go func() {
		defer far.Close()
		_ = tls.Client(far, c).Handshake()
	}()
	b := make([]byte, 16<<10)
	n, err := near.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	return b[:n]
}

func TestParse(t *testing.T) {
	for name, test := range map[string]struct {
		config  *tls.Config
		server  string
		list    string
		version string
	}{
		"name":      {&tls.Config{ServerName: "Foo.example"}, "Foo.example", "", "TLSv1.3"},
		"address":   {&tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12}, "", "", "TLSv1.3"}, // the extension is sent in any case
		"protocols": {&tls.Config{ServerName: "a.example", NextProtos: []string{"h2", "http/1.1"}}, "a.example", "h2,http/1.1", "TLSv1.3"},
	} {
		t.Run(name, func(t *testing.T) {
			b := clientHello(t, test.config)
			h, result := hello.Parse(append(slices.Clone(b), "more"...))
			if result != hello.Complete || h.ServerName != test.server || h.ProtocolList() != test.list || h.VersionName() != test.version {
				t.Errorf("%v: %q, %q, %q", result, h.ServerName, h.ProtocolList(), h.VersionName())
			}
			for i := range b {
				if _, result := hello.Parse(b[:i]); result != hello.More {
					t.Fatalf("the first %d bytes: %v", i, result)
				}
			}
		})
	}
}

// A ClientHello may be in several records.
func TestParseRecords(t *testing.T) {
	b := clientHello(t, &tls.Config{ServerName: "split.example"})
	var split []byte
	for piece := range slices.Chunk(b[5:], 7) {
		split = append(append(split, 22, 3, 1, 0, byte(len(piece))), piece...)
	}
	if h, result := hello.Parse(split); result != hello.Complete || h.ServerName != "split.example" {
		t.Errorf("%v, %q", result, h.ServerName)
	}
}

func TestParseOther(t *testing.T) {
	for name, in := range map[string]string{
		"HTTP":              "GET / HTTP/1.1\r\n",
		"another version":   "\x16\x02\x01\x00\x01x",
		"not a ClientHello": "\x16\x03\x01\x00\x04\x02\x00\x00\x00",
		"too short":         "\x16\x03\x01\x00\x05\x01\x00\x00\x01\x03",
		"no session":        "\x16\x03\x01\x00\x26\x01\x00\x00\x22\x03\x03 12345678901234567890123456789012",
	} {
		if h, result := hello.Parse([]byte(in)); result != hello.Other || h.ServerName != "" {
			t.Errorf("%s: %v, %v", name, result, h)
		}
	}
	// One of SSL 2.0, which says the version only.
	if h, result := hello.Parse([]byte("\x80\x2e\x01\x03\x01\x00")); result != hello.Complete || h.VersionName() != "TLSv1" {
		t.Errorf("%v, %v", result, h)
	}
}

// No more is read than was received, and a result does not change with what follows.
func FuzzParse(f *testing.F) {
	f.Add(clientHello(f, &tls.Config{ServerName: "fuzz.example", NextProtos: []string{"h2"}}))
	f.Add([]byte("\x80\x2e\x01\x03\x01\x00"))
	f.Add([]byte("\x16\x03\x01\x00\x04\x01\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, result := hello.Parse(b)
		if len(h.ServerName)+len(h.ProtocolList()) > len(b) {
			t.Fatalf("%d bytes of %d", len(h.ServerName)+len(h.ProtocolList()), len(b))
		}
		again, next := hello.Parse(append(slices.Clone(b), 22, 3, 1, 0, 0))
		if result != hello.More && (next != result || again.ServerName != h.ServerName || again.Version != h.Version) {
			t.Fatalf("%v %v, and with more %v %v", result, h, next, again)
		}
	})
}
