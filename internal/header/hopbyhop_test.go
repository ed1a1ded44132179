package header_test

import (
	"maps"
	"net/http"
	"slices"
	"testing"

	"github.com/culvert-go/culvert/internal/header"
)

func TestRemoveHopByHop(t *testing.T) {
	tests := []struct {
		name     string
		in, want http.Header
	}{
		{"nothing to remove", http.Header{"X": {"1"}}, http.Header{"X": {"1"}}},
		{
			"the standard's own",
			http.Header{"Connection": {"close"}, "Keep-Alive": {"5"}, "Proxy-Connection": {"x"}, "Proxy-Authenticate": {"x"}, "Proxy-Authorization": {"x"},
				"Te": {"gzip"}, "Trailer": {"X"}, "Transfer-Encoding": {"chunked"}, "Upgrade": {"h2c"}, "Http2-Settings": {"x"}, "X": {"1"}},
			http.Header{"X": {"1"}},
		},
		{
			"named in any case, on any line, with any space",
			http.Header{"Connection": {"x-a,X-B ,\tx-C", "X-d"}, "X-A": {"1"}, "X-B": {"1"}, "X-C": {"1"}, "X-D": {"1"}, "X-E": {"1"}},
			http.Header{"X-E": {"1"}},
		},
		{
			"not what is meant for everyone",
			http.Header{"Connection": {"authorization, cookie, origin, host, content-length, content-type, range, set-cookie, sec-websocket-key"},
				"Authorization": {"a"}, "Cookie": {"c"}, "Origin": {"o"}, "Content-Length": {"1"}, "Content-Type": {"t"}, "Range": {"r"}, "Set-Cookie": {"s"}, "Sec-Websocket-Key": {"k"}},
			http.Header{"Authorization": {"a"}, "Cookie": {"c"}, "Origin": {"o"}, "Content-Length": {"1"}, "Content-Type": {"t"}, "Range": {"r"}, "Set-Cookie": {"s"}, "Sec-Websocket-Key": {"k"}},
		},
		{"names that are none", http.Header{"Connection": {",, ;a=b, \x00, é"}, "X": {"1"}}, http.Header{"X": {"1"}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			header.RemoveHopByHop(test.in)
			if !maps.EqualFunc(test.in, test.want, slices.Equal) {
				t.Errorf("left %v, want %v", test.in, test.want)
			}
		})
	}
}

func TestHasToken(t *testing.T) {
	for _, test := range []struct {
		lines []string
		want  bool
	}{
		{[]string{"upgrade"}, true},
		{[]string{"keep-alive, \tUPGRADE "}, true},
		{[]string{"keep-alive", "Upgrade"}, true},
		{[]string{"upgrades"}, false},
		{[]string{"not upgrade"}, false},
		{[]string{"\"upgrade\""}, false},
		{nil, false},
	} {
		if got := header.HasToken(test.lines, "upgrade"); got != test.want {
			t.Errorf("%q: %v", test.lines, got)
		}
	}
}
