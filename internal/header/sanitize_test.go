package header_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/internal/header"
)

func request(h http.Header) *http.Request {
	return &http.Request{Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: h}
}

func TestSanitizeRequest(t *testing.T) {
	tests := []struct {
		name      string
		protocols []string
		in, want  http.Header
		protocol  string
	}{
		{"websocket by default", nil,
			http.Header{"Connection": {"keep-alive, Upgrade"}, "Upgrade": {"WebSocket"}},
			http.Header{"Connection": {"Upgrade"}, "Upgrade": {"WebSocket"}}, "WebSocket"},
		{"the first offer without websocket", nil,
			http.Header{"Connection": {"upgrade"}, "Upgrade": {"h2c, SPDY/3.1, tcp"}},
			http.Header{"Connection": {"Upgrade"}, "Upgrade": {"SPDY/3.1"}}, "SPDY/3.1"},
		{"websocket before others", nil,
			http.Header{"Connection": {"upgrade"}, "Upgrade": {"tcp", "websocket"}},
			http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}}, "websocket"},
		{"one from the list", []string{"tcp"},
			http.Header{"Connection": {"upgrade"}, "Upgrade": {"websocket, TCP"}},
			http.Header{"Connection": {"Upgrade"}, "Upgrade": {"TCP"}}, "TCP"},
		{"an empty list allows none", []string{},
			http.Header{"Connection": {"upgrade"}, "Upgrade": {"websocket"}}, http.Header{}, ""},
		{"Upgrade that Connection does not name", nil,
			http.Header{"Connection": {"close"}, "Upgrade": {"websocket"}}, http.Header{}, ""},
		{"Connection alone", nil,
			http.Header{"Connection": {"upgrade"}}, http.Header{}, ""},
		{"protocols that would hide requests", []string{"h2c", "HTTP/2.0", "TLS/1.0"},
			http.Header{"Connection": {"upgrade"}, "Upgrade": {"h2c, HTTP/2.0, TLS/1.0, h2"}}, http.Header{}, ""},
		{"no protocol's name", nil,
			http.Header{"Connection": {"upgrade"}, "Upgrade": {"a b, /1, x/, " + strings.Repeat("x", 65)}}, http.Header{}, ""},
		{"trailers are the one TE that is kept", nil,
			http.Header{"Te": {"gzip, Trailers"}}, http.Header{"Te": {"trailers"}}, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := request(test.in)
			for range 2 { // doing it again changes nothing
				if got := header.SanitizeRequest(r, test.protocols); got != test.protocol {
					t.Errorf("protocol %q, want %q", got, test.protocol)
				}
				if !maps.EqualFunc(r.Header, test.want, slices.Equal) {
					t.Errorf("left %v, want %v", r.Header, test.want)
				}
			}
		})
	}
}

// Upgrade means nothing in HTTP/1.0, and HTTP/2 has no such field.
func TestNoUpgradeInOtherVersions(t *testing.T) {
	for _, version := range [][2]int{{1, 0}, {2, 0}} {
		r := request(http.Header{"Connection": {"upgrade"}, "Upgrade": {"websocket"}})
		r.ProtoMajor, r.ProtoMinor = version[0], version[1]
		if got := header.SanitizeRequest(r, nil); got != "" || len(r.Header) != 0 {
			t.Errorf("HTTP/%d.%d: %q, left %v", version[0], version[1], got, r.Header)
		}
	}
}

func TestSanitizeResponse(t *testing.T) {
	tests := []struct {
		name     string
		status   int
		protocol string
		in, want http.Header
	}{
		{"final", 200, "",
			http.Header{"Connection": {"X-Hop"}, "X-Hop": {"1"}, "Keep-Alive": {"5"}, "Upgrade": {"h2"}, "Set-Cookie": {"a"}},
			http.Header{"Set-Cookie": {"a"}}},
		{"interim", 103, "",
			http.Header{"Connection": {"X-Hop"}, "X-Hop": {"1"}, "Link": {"a"}},
			http.Header{"Link": {"a"}}},
		{"101", 101, "websocket",
			http.Header{"Connection": {"keep-alive, upgrade, x-hop"}, "Upgrade": {"WEBSOCKET"}, "X-Hop": {"1"}, "Content-Length": {"0"}, "Transfer-Encoding": {"chunked"}, "Sec-Websocket-Accept": {"x"}},
			http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Accept": {"x"}}},
		{"426 says what to request", 426, "",
			http.Header{"Connection": {"upgrade"}, "Upgrade": {"HTTP/3.0"}},
			http.Header{"Connection": {"Upgrade"}, "Upgrade": {"HTTP/3.0"}}},
		{"426 without Upgrade", 426, "", http.Header{"Connection": {"close"}}, http.Header{}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			header.SanitizeResponse(test.status, test.in, test.protocol)
			if !maps.EqualFunc(test.in, test.want, slices.Equal) {
				t.Errorf("left %v, want %v", test.in, test.want)
			}
		})
	}
}

// FuzzSanitizeRequest: with any Connection and Upgrade, what remains of them
// is one protocol that may be switched to, or nothing.
func FuzzSanitizeRequest(f *testing.F) {
	f.Add("keep-alive, Upgrade", "websocket", "trailers")
	f.Add("close, x-forwarded-for", "h2c, tcp/1", "gzip;q=0")
	f.Add("upgrade\x00,,\"", "a/b/c , é", "")
	f.Fuzz(func(t *testing.T, connection, upgrade, te string) {
		r := request(http.Header{"Connection": {connection}, "Upgrade": {upgrade}, "Te": {te}, "Keep-Alive": {"1"}, "Authorization": {"a"}})
		protocol := header.SanitizeRequest(r, nil)
		want := http.Header{"Authorization": {"a"}}
		if protocol != "" {
			want["Connection"], want["Upgrade"] = []string{"Upgrade"}, []string{protocol}
			if !header.Forwardable(protocol) {
				t.Errorf("protocol %q", protocol)
			}
		}
		if r.Header["Te"] != nil {
			want["Te"] = []string{"trailers"}
		}
		if !maps.EqualFunc(r.Header, want, slices.Equal) {
			t.Errorf("left %v, want %v", r.Header, want)
		}
	})
}

func BenchmarkSanitizeRequest(b *testing.B) {
	h := http.Header{"Accept": {"*/*"}, "User-Agent": {"x"}, "Connection": {"keep-alive"}, "Cookie": {"a=b"}}
	r := request(h)
	b.ReportAllocs()
	for b.Loop() {
		h["Connection"] = []string{"keep-alive"}
		header.SanitizeRequest(r, nil)
	}
}
