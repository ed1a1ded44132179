package route_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/nginx/internal/engine/route"
)

func TestEscapeRefresh(t *testing.T) {
	if got, want := route.EscapeRefresh("/a b\"'<>%\\^`{|}~\xff?c=d"), "/a%20b%22%27%3C%3E%%5C%5E%60%7B%7C}%7E%FF?c=d"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestNormalize(t *testing.T) {
	tests := []struct {
		path, want string // "" for an error
		keep       bool   // merge_slashes off
	}{
		{path: "/", want: "/"},
		{path: "/a/b", want: "/a/b"},
		{path: "/a%20b", want: "/a b"},
		{path: "/%41%2f%42", want: "/A/B"},
		{path: "//a///b//", want: "/a/b/"},
		{path: "//a///b//", want: "//a///b//", keep: true},
		{path: "/a/./b/.", want: "/a/b/"},
		{path: "/a/../b", want: "/b"},
		{path: "/a/b/..", want: "/a/"},
		{path: "/a/..", want: "/"},
		{path: "/a/%2e%2E/b", want: "/b"},
		{path: "/a%2f..%2fb", want: "/b"},
		{path: "/a//../b", want: "/b"},
		{path: "/a//../b", want: "/a/b", keep: true},
		{path: "/...", want: "/..."},
		{path: "/.hidden", want: "/.hidden"},
		{path: "/a%3Fb%23c%25", want: "/a?b#c%"},
		{path: "/%252e%252e/", want: "/%2e%2e/"}, // decoded once
		{path: "/a+b", want: "/a+b"},
		{path: "/\xff%ff", want: "/\xff\xff"},
		{path: "/.."}, {path: "/../a"}, {path: "/a/../../b"}, {path: "/%2e%2e/"}, {path: "//..", keep: false},
		{path: "/%"}, {path: "/%4"}, {path: "/%zz"}, {path: "/%00"}, {path: "/a\x00"}, {path: ""}, {path: "a"}, {path: "*"},
	}
	for _, tt := range tests {
		got, err := route.Normalize(tt.path, !tt.keep)
		if got != tt.want || (err != nil) != (tt.want == "") {
			t.Errorf("%q: got %q, %v; want %q", tt.path, got, err, tt.want)
		}
	}
}

func TestSplit(t *testing.T) {
	for target, want := range map[string][2]string{
		"/a":        {"/a", ""},
		"/a?":       {"/a", ""},
		"/a?b?c":    {"/a", "b?c"},
		"/a#b?c":    {"/a", ""},
		"/a?b#c":    {"/a", "b"},
		"/a%3Fb?%3": {"/a%3Fb", "%3"},
	} {
		path, args := route.Split(target)
		if path != want[0] || args != want[1] {
			t.Errorf("%q: got %q and %q", target, path, args)
		}
	}
}

func TestEscape(t *testing.T) {
	for path, want := range map[string]string{
		"/plain-._~!$&'()*+,;=:@/": "/plain-._~!$&'()*+,;=:@/",
		"/a b":                     "/a%20b",
		"/\"#%<>?\\^`{|}":          "/%22%23%25%3C%3E%3F%5C%5E%60%7B%7C%7D",
		"/\r\n\x7f":                "/%0D%0A%7F",
		"/é":                       "/%C3%A9",
	} {
		if got := route.Escape(path); got != want {
			t.Errorf("%q: got %q, want %q", path, got, want)
		}
	}
}

func FuzzNormalize(f *testing.F) {
	for _, seed := range []string{"/", "/a/../b", "/%2e%2e/", "//a//", "/a%2f..%2f..", "/./%2e", "/%", "/a/.../b/.."} {
		f.Add(seed, true)
		f.Add(seed, false)
	}
	f.Fuzz(func(t *testing.T, path string, merge bool) {
		uri, err := route.Normalize(path, merge)
		if err != nil {
			return
		}
		if uri == "" || uri[0] != '/' || strings.IndexByte(uri, 0) >= 0 {
			t.Fatalf("%q became %q", path, uri)
		}
		for segment := range strings.SplitSeq(uri[1:], "/") {
			if segment == "." || segment == ".." {
				t.Fatalf("%q became %q", path, uri)
			}
		}
		if merge && strings.Contains(uri, "//") {
			t.Fatalf("%q became %q", path, uri)
		}
		escaped := route.Escape(uri)
		if decoded, err := url.PathUnescape(escaped); err != nil || decoded != uri {
			t.Fatalf("%q was escaped as %q", uri, escaped)
		}
		again, err := route.Normalize(escaped, merge)
		if err != nil || again != uri {
			t.Fatalf("%q, escaped and normalised again, became %q", uri, again)
		}
	})
}
