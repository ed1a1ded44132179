package filters_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
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
	compress, decode := compressing(t), decoding(t)
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
				content = string(zipped(t, plain))
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

// Trailers with a checksum are removed too, announced or not, and other trailers are kept.
func TestDigestTrailers(t *testing.T) {
	lines := "{\"a\":1}\n"
	pages := filters.ErrorPages(func(int) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "page") })
	})
	for name, test := range map[string]struct {
		filter   culvert.Filter
		status   int
		header   map[string]string
		content  string
		digests  bool // they are kept
		trailers bool // the others are
	}{
		"compressed":      {compressing(t), 200, map[string]string{"Content-Type": "text/plain"}, strings.Repeat("content ", 500), false, true},
		"not compressed":  {compressing(t), 200, map[string]string{"Content-Type": "image/png"}, strings.Repeat("content ", 500), true, true},
		"decoded":         {decoding(t), 200, map[string]string{"Content-Encoding": "gzip"}, string(zipped(t, "content")), false, true},
		"not decoded":     {decoding(t), 200, nil, "content", true, true},
		"records":         {identityRecords(t), 200, map[string]string{"Content-Type": "application/jsonl"}, lines, false, true},
		"no records":      {identityRecords(t), 200, nil, lines, true, true},
		"records refused": {identityRecords(t), 200, map[string]string{"Content-Type": "application/jsonl", "Content-Encoding": "gzip"}, string(zipped(t, lines)), false, false},
		"replaced":        {pages, 410, nil, "gone", false, false},
		"not replaced":    {pages, 200, nil, "content", true, true},
	} {
		for _, announced := range []bool{true, false} {
			for _, version := range []int{1, 2} {
				t.Run(fmt.Sprintf("%s, announced %v, HTTP/%d", name, announced, version), func(t *testing.T) {
					leaktest.Check(t)
					server := httptest.NewUnstartedServer(test.filter(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
						for field, value := range test.header {
							w.Header().Set(field, value)
						}
						prefix := http.TrailerPrefix
						if announced {
							w.Header().Set("Trailer", "Content-Digest, X-End")
							w.Header().Add("Trailer", "repr-digest, digest,content-md5")
							prefix = ""
						}
						w.WriteHeader(test.status)
						_, _ = io.WriteString(w, test.content)
						_ = http.NewResponseController(w).Flush() // trailers that are not announced need chunks
						for _, field := range append([]string{"X-End"}, digestFields...) {
							w.Header()[prefix+field] = []string{"1"}
						}
					})))
					server.EnableHTTP2 = version == 2
					wiretest.StartTLS(server)
					defer server.Close()
					r, err := http.NewRequestWithContext(t.Context(), "GET", server.URL, http.NoBody)
					if err != nil {
						t.Fatal(err)
					}
					r.Header.Set("Accept-Encoding", "gzip")
					resp, err := server.Client().Do(r)
					if err != nil {
						t.Fatal(err)
					}
					defer resp.Body.Close()
					if _, err := io.Copy(io.Discard, resp.Body); err != nil {
						t.Fatal(err)
					}
					wantDigests(t, "the trailer", resp.Trailer, test.digests)
					if got := resp.Trailer.Get("X-End"); (got == "1") != test.trailers {
						t.Errorf("trailers %v", resp.Trailer)
					}
				})
			}
		}
	}
}

// Those of a request that is decoded are removed, too.
func TestDigestTrailersOfARequest(t *testing.T) {
	for name, test := range map[string]struct {
		encoding, content string
		kept              bool
	}{
		"decoded":     {"Content-Encoding: gzip\r\n", string(zipped(t, "content")), false},
		"not decoded": {"", "content", true},
	} {
		for _, announcement := range []string{"Trailer: Digest, Repr-Digest, Content-Digest, Content-Md5, X-End\r\n", "Trailer: X-End\r\n", ""} {
			t.Run(name+", "+announcement, func(t *testing.T) {
				leaktest.Check(t)
				received := make(chan http.Header, 1)
				h := filters.NewChain(decoding(t)).ThenFunc(func(_ http.ResponseWriter, r *http.Request) {
					if content, err := io.ReadAll(r.Body); err != nil || string(content) != "content" {
						t.Errorf("%q, %v", content, err)
					}
					received <- r.Trailer.Clone()
				})
				client := wiretest.Dial(t, wiretest.Serve(t, h))
				client.Send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n" + test.encoding + announcement + "\r\n" +
					fmt.Sprintf("%x\r\n%s\r\n0\r\nDigest: 1\r\nRepr-Digest: 1\r\nContent-Digest: 1\r\nContent-MD5: 1\r\nX-End: 1\r\n\r\n", len(test.content), test.content))
				client.Status(200)
				got := wiretest.Await(t, received, "trailers")
				wantDigests(t, "the trailer", got, test.kept)
				if got.Get("X-End") != "1" {
					t.Errorf("trailers %v", got)
				}
			})
		}
	}
}

func compressing(t *testing.T) culvert.Filter {
	return good(t)(filters.Compress(filters.CompressOptions{}))
}

func decoding(t *testing.T) culvert.Filter {
	return good(t)(filters.Decompress(filters.DecompressOptions{Requests: true, Responses: true}))
}

func identityRecords(t *testing.T) culvert.Filter {
	return good(t)(filters.Records(filters.RecordsOptions{Rewrite: func(*http.Request) func([]byte) ([]byte, error) {
		return func(record []byte) ([]byte, error) { return record, nil }
	}}))
}
