package filters_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/filters"
)

// digestFields are the header fields with a checksum of the content.
var digestFields = []string{"Content-Digest", "Repr-Digest", "Digest", "Content-Md5"}

func setDigests(h http.Header) {
	for _, name := range digestFields {
		h.Set(name, "sha-256=:AAAA:")
	}
}

// A checksum is removed if the content is changed, and kept if it is not.
func TestDigests(t *testing.T) {
	plain := strings.Repeat("content ", 500)
	var zipped bytes.Buffer
	zip := gzip.NewWriter(&zipped)
	_, _ = io.WriteString(zip, plain)
	_ = zip.Close()
	compress := good(t)(filters.Compress(filters.CompressOptions{}))
	decode := good(t)(filters.Decompress(filters.DecompressOptions{Requests: true, Responses: true}))
	pages := filters.ErrorPages(func(status int) http.Handler {
		if status != http.StatusGone {
			return nil
		}
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "page") })
	})
	for _, test := range []struct {
		name     string
		filter   culvert.Filter
		status   int
		accept   string
		encoding string // of the request and the response
		in, out  bool   // whether the checksums of the request and the response are kept
	}{
		{"compressed", compress, 200, "gzip", "", true, false},
		{"not to be compressed", compress, 200, "br", "", true, true},
		{"decoded", decode, 200, "", "gzip", false, false},
		{"not to be decoded", decode, 200, "", "", true, true},
		{"replaced", pages, 410, "", "", true, false},
		{"not to be replaced", pages, 404, "", "", true, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			content := plain
			if test.encoding != "" {
				content = zipped.String()
			}
			r := httptest.NewRequest("POST", "/", strings.NewReader(content))
			r.Header.Set("Accept-Encoding", test.accept)
			setDigests(r.Header)
			if test.encoding != "" {
				r.Header.Set("Content-Encoding", test.encoding)
			}
			w := httptest.NewRecorder()
			test.filter(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				wantDigests(t, "the request", r.Header, test.in)
				setDigests(w.Header())
				w.Header().Set("Content-Type", "text/plain")
				if test.encoding != "" {
					w.Header().Set("Content-Encoding", test.encoding)
				}
				w.WriteHeader(test.status)
				_, _ = io.WriteString(w, content)
			})).ServeHTTP(w, r)
			wantDigests(t, "the response", w.Result().Header, test.out)
		})
	}
}

func wantDigests(t *testing.T, what string, h http.Header, want bool) {
	t.Helper()
	for _, name := range digestFields {
		if got := h[name] != nil; got != want {
			t.Errorf("%s has %s: %v, want %v", what, name, got, want)
		}
	}
}

// Trailers with a checksum are removed too, and other trailers are kept.
func TestDigestTrailers(t *testing.T) {
	for _, encoding := range []string{"identity", "gzip"} {
		t.Run(encoding, func(t *testing.T) {
			h := good(t)(filters.Compress(filters.CompressOptions{}))(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/plain")
				w.Header().Set("Trailer", "Content-Digest, X-End")
				w.Header().Add("Trailer", "repr-digest")
				_, _ = io.WriteString(w, strings.Repeat("content ", 500))
				setDigests(w.Header())
				w.Header().Set("X-End", "1")
			}))
			server := httptest.NewServer(h)
			defer server.Close()
			r, err := http.NewRequestWithContext(t.Context(), "GET", server.URL, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Accept-Encoding", encoding)
			resp, err := server.Client().Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if _, err := io.Copy(io.Discard, resp.Body); err != nil {
				t.Fatal(err)
			}
			kept := encoding == "identity"
			for _, name := range []string{"Content-Digest", "Repr-Digest"} {
				if got := resp.Trailer.Get(name); (got != "") != kept {
					t.Errorf("%s is %q", name, got)
				}
			}
			if resp.Trailer.Get("X-End") != "1" {
				t.Errorf("trailers %v", resp.Trailer)
			}
		})
	}
}
