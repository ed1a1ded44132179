package proxyproto_test

import (
	"bytes"
	"net/netip"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/internal/proxyproto"
)

const signature = "\r\n\r\n\x00\r\nQUIT\n"

func header(client, server string) (h proxyproto.Header) {
	if client != "" {
		h.Client = netip.MustParseAddrPort(client)
	}
	if server != "" {
		h.Server = netip.MustParseAddrPort(server)
	}
	return h
}

// The bytes are those of the specification (sections 2.1 and 2.2).
func TestAppend(t *testing.T) {
	for _, test := range []struct {
		h      proxyproto.Header
		v1, v2 string
	}{
		{header("192.168.0.1:56324", "192.168.0.11:443"), "PROXY TCP4 192.168.0.1 192.168.0.11 56324 443\r\n",
			"\x21\x11\x00\x0c\xc0\xa8\x00\x01\xc0\xa8\x00\x0b\xdc\x04\x01\xbb"},
		{header("[2001:db8::1]:1", "[2001:db8::2]:65535"), "PROXY TCP6 2001:db8::1 2001:db8::2 1 65535\r\n",
			"\x21\x21\x00\x24\x20\x01\x0d\xb8" + strings.Repeat("\x00", 11) + "\x01\x20\x01\x0d\xb8" + strings.Repeat("\x00", 11) + "\x02\x00\x01\xff\xff"},
		// One that a dual-stack socket has accepted.
		{header("[::ffff:192.0.2.1]:7", "[::ffff:192.0.2.2]:8"), "PROXY TCP4 192.0.2.1 192.0.2.2 7 8\r\n",
			"\x21\x11\x00\x0c\xc0\x00\x02\x01\xc0\x00\x02\x02\x00\x07\x00\x08"},
		// A client that a trusted proxy has named, of the other family than the connection's.
		{header("192.0.2.1:0", "[2001:db8::2]:80"), "PROXY TCP6 ::ffff:192.0.2.1 2001:db8::2 0 80\r\n",
			"\x21\x21\x00\x24" + strings.Repeat("\x00", 10) + "\xff\xff\xc0\x00\x02\x01\x20\x01\x0d\xb8" + strings.Repeat("\x00", 11) + "\x02\x00\x00\x00\x50"},
		{header("[fe80::1%eth0]:9", ""), "PROXY TCP6 fe80::1 :: 9 0\r\n",
			"\x21\x21\x00\x24\xfe\x80" + strings.Repeat("\x00", 13) + "\x01" + strings.Repeat("\x00", 16) + "\x00\x09\x00\x00"},
		{header("192.0.2.1:7", ""), "PROXY TCP4 192.0.2.1 0.0.0.0 7 0\r\n", "\x21\x11\x00\x0c\xc0\x00\x02\x01\x00\x00\x00\x00\x00\x07\x00\x00"},
		{header("", "192.0.2.2:80"), "PROXY UNKNOWN\r\n", "\x21\x00\x00\x00"},
		{proxyproto.Header{Local: true}, "PROXY UNKNOWN\r\n", "\x20\x00\x00\x00"},
	} {
		if got := string(test.h.Append1(nil)); got != test.v1 {
			t.Errorf("%v: version 1 is %q, want %q", test.h, got, test.v1)
		}
		if got := string(test.h.Append2(nil)); got != signature+test.v2 {
			t.Errorf("%v: version 2 is %q, want %q", test.h, got, signature+test.v2)
		}
	}
}

func withTLVs(tlvs string) proxyproto.Header {
	h := header("192.0.2.1:7", "192.0.2.2:8")
	h.TLVs = tlvs
	return h
}

func TestParse(t *testing.T) {
	for _, test := range []struct {
		in   string
		want proxyproto.Header
	}{
		{"PROXY UNKNOWN ffff:: ffff:: 65535 65535\r\n", proxyproto.Header{}},
		{"PROXY TCP6 ::1 ::ffff:192.0.2.1 0 65535\r\n", header("[::1]:0", "[::ffff:192.0.2.1]:65535")},
		// With two TLVs behind the addresses.
		{signature + "\x21\x11\x00\x13\xc0\x00\x02\x01\xc0\x00\x02\x02\x00\x07\x00\x08\x04\x00\x00\x05\x00\x01x", withTLVs("\x04\x00\x00\x05\x00\x01x")},
		{signature + "\x20\x11\x00\x0c\xc0\x00\x02\x01\xc0\x00\x02\x02\x00\x07\x00\x08", proxyproto.Header{Local: true}},
		{signature + "\x21\x12\x00\x0c\xc0\x00\x02\x01\xc0\x00\x02\x02\x00\x07\x00\x08", proxyproto.Header{}}, // UDP
		{signature + "\x21\x31\x00\xd8" + strings.Repeat("/", 216), proxyproto.Header{}},                      // a unix socket
	} {
		got, n, err := proxyproto.Parse([]byte(test.in + "GET"))
		if err != nil || n != len(test.in) || got != test.want {
			t.Errorf("%q: %v of %d bytes, %v; want %v of %d", test.in, got, n, err, test.want, len(test.in))
		}
		for i := range test.in {
			if _, n, err := proxyproto.Parse([]byte(test.in[:i])); n != 0 || err != nil {
				t.Errorf("the first %d bytes of %q are a header of %d, %v", i, test.in, n, err)
			}
		}
	}
}

func TestParseInvalid(t *testing.T) {
	for _, in := range []string{
		"GET / HTTP/1.1\r\n", "PROXX", "PROXY TCP4\r\n", "PROXY tcp4 192.0.2.1 192.0.2.2 1 2\r\n", "PROXY TCP4 192.0.2.1 192.0.2.2 1 2 \r\n",
		"PROXY TCP4 ::1 ::1 1 2\r\n", "PROXY TCP6 192.0.2.1 192.0.2.2 1 2\r\n", "PROXY TCP4 192.0.2.1 192.0.2.2 +1 2\r\n",
		"PROXY TCP4 192.0.2.1 192.0.2.2 1 65536\r\n", "PROXY INVALID", "PROXY TCP4\t", "PROXY TCP6 fe80::1%1 ::1 1 2\r\n", "PROXY  TCP4 192.0.2.1 192.0.2.2 1 2\r\n",
		"PROXY UNKNOWN " + strings.Repeat("x", 100),
		signature + "\x11\x11\x00\x0c", signature + "\x22\x11\x00\x0c", signature + "\x21\x11\x00\x0b12345678901", signature + "\x21\x11\x0f\xf1",
	} {
		if h, n, err := proxyproto.Parse([]byte(in)); err == nil || n != 0 {
			t.Errorf("%q is taken for a header of %d bytes: %v", in, n, h)
		}
	}
}

// What is written is read back, and nothing that is read is more than it was.
func FuzzHeader(f *testing.F) {
	f.Add([]byte("PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\nGET"))
	f.Add([]byte("PROXY UNKNOWN\r\n"))
	f.Add([]byte(signature + "\x21\x11\x00\x0c\xc0\x00\x02\x01\xc0\x00\x02\x02\x00\x07\x00\x08"))
	f.Add([]byte(signature + "\x21\x21\x00\x24" + strings.Repeat("\x01", 36)))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, n, err := proxyproto.Parse(b)
		if n < 0 || n > len(b) || err != nil && n > 0 {
			t.Fatalf("%d of %d bytes, %v", n, len(b), err)
		}
		if n == 0 {
			return
		}
		h.Client, h.Server, h.TLVs = plain(h.Client), plain(h.Server), ""
		for name, written := range map[string][]byte{"1": h.Append1(nil), "2": h.Append2(nil)} {
			got, n, err := proxyproto.Parse(append(bytes.Clone(written), b...))
			got.Client, got.Server = plain(got.Client), plain(got.Server)
			want := h
			want.Local = h.Local && name == "2"
			if err != nil || n != len(written) || got != want {
				t.Errorf("version %s of %v is %q, which is read as %v, %v", name, h, written, got, err)
			}
		}
	})
}

// plain returns an IPv4 address in IPv6 as the IPv4 address, which is written.
func plain(a netip.AddrPort) netip.AddrPort {
	if !a.IsValid() {
		return a
	}
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
}
