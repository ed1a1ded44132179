package header_test

import (
	"maps"
	"net/http"
	"slices"
	"testing"

	"github.com/culvert-go/culvert/internal/header"
)

// What describes the former content is deleted, and nothing else.
func TestContentFields(t *testing.T) {
	former := http.Header{
		"Content-Type": {"text/plain"}, "Content-Encoding": {"gzip"}, "Cache-Control": {"no-cache"},
		"Content-Length": {"3"}, "Accept-Ranges": {"bytes"}, "Etag": {`"a"`}, "Last-Modified": {"Mon, 23 Nov 2026 10:00:00 GMT"},
		"Content-Digest": {"sha-256=:AA==:"}, "Repr-Digest": {"sha-256=:AA==:"}, "Digest": {"sha-256=AA=="}, "Content-Md5": {"AA=="},
		"Trailer": {"repr-digest, X-End"},
	}
	for _, test := range []struct {
		name    string
		change  func(http.Header)
		deleted []string
		etag    string
	}{
		{"rewritten", header.ContentRewritten, []string{"Content-Length", "Accept-Ranges", "Last-Modified",
			"Content-Digest", "Repr-Digest", "Digest", "Content-Md5"}, ""},
		{"recoded", header.ContentRecoded, []string{"Content-Length", "Accept-Ranges",
			"Content-Digest", "Repr-Digest", "Digest", "Content-Md5"}, `W/"a"`},
		{"no digests", header.DeleteDigests, []string{"Content-Digest", "Repr-Digest", "Digest", "Content-Md5"}, `"a"`},
	} {
		want := former.Clone()
		for _, name := range test.deleted {
			delete(want, name)
		}
		want.Set("Trailer", "X-End")
		want["Etag"] = []string{test.etag}
		if test.etag == "" {
			delete(want, "Etag")
		}
		h := former.Clone()
		if test.change(h); !maps.EqualFunc(h, want, slices.Equal) {
			t.Errorf("%s: %v, want %v", test.name, h, want)
		}
	}
}

// A Trailer that names digests alone is deleted.
func TestDigestTrailersAlone(t *testing.T) {
	h := http.Header{"Trailer": {"Digest", "content-md5, "}}
	if header.DeleteDigests(h); len(h) > 0 {
		t.Error(h)
	}
}

// Only a strong ETag is changed.
func TestWeakenETag(t *testing.T) {
	for tag, want := range map[string]string{`"a"`: `W/"a"`, `W/"a"`: `W/"a"`, "": ""} {
		h := http.Header{"Etag": {tag}}
		if header.WeakenETag(h); h.Get("Etag") != want {
			t.Errorf("%q becomes %q, want %q", tag, h.Get("Etag"), want)
		}
	}
	h := http.Header{}
	if header.WeakenETag(h); len(h) > 0 {
		t.Error(h)
	}
}
