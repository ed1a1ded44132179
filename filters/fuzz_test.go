package filters_test

import (
	"net/http/httptest"
	"net/url"
	"path"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/filters"
)

// For each Accept-Encoding the content can be decoded by the response's Content-Encoding, which the
// client accepts.
func FuzzAcceptEncoding(f *testing.F) {
	for _, seed := range []string{"gzip", "zstd;q=0.5, gzip", "*;q=0", "identity;q=0", ";q=", "gzip;q=1.0000"} {
		f.Add(seed)
	}
	compress := good(f)(filters.Compress(filters.CompressOptions{}))
	f.Fuzz(func(t *testing.T, accept string) {
		r := get()
		r.Header["Accept-Encoding"] = []string{accept}
		resp, body := through(compress, respond(page, "Content-Type", "text/plain"), r)
		encoding := resp.Header.Get("Content-Encoding")
		if text := decode(t, encoding, strings.NewReader(body)); text != page {
			t.Errorf("%q: %d bytes by %q", accept, len(text), encoding)
		}
		if encoding != "" && !strings.Contains(strings.ToLower(accept), encoding) && !strings.Contains(accept, "*") {
			t.Errorf("%q: encoded by %q", accept, encoding)
		}
	})
}

// The path of a request target without ambiguities is not changed by path.Clean after it was
// decoded.
func FuzzRefuseAmbiguous(f *testing.F) {
	for _, seed := range []string{"/a/b?c=d", "/a/%2e%2e/b", "/a//b", "/%252e", "/a/..;/b", "/\\..", "/a%2"} {
		f.Add(seed)
	}
	refuse := filters.RefuseAmbiguous(filters.AnyAmbiguity)
	f.Fuzz(func(t *testing.T, target string) {
		u, err := url.ParseRequestURI(target)
		if err != nil || u.Host != "" || !strings.HasPrefix(target, "/") {
			return
		}
		r := httptest.NewRequest("GET", "/", nil)
		r.URL = u
		if resp, _ := through(refuse, respond("ok"), r); resp.StatusCode == 400 {
			return
		}
		clean := path.Clean(u.Path)
		if strings.HasSuffix(u.Path, "/") && clean != "/" {
			clean += "/"
		}
		if clean != u.Path || strings.Contains(u.Path, "\\") {
			t.Errorf("%q passes, and is %q when cleaned", target, clean)
		}
	})
}
