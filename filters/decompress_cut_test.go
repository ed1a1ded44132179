package filters_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/culvert-go/culvert/filters"
)

// A body that is cut off before the first byte of its encoding, or between two frames, is not complete, though
// decoders take io.ErrUnexpectedEOF for the end there.
func TestDecompressBodyThatBreaksOff(t *testing.T) {
	f := good(t)(filters.Decompress(filters.DecompressOptions{Requests: true}))
	for _, cause := range []error{io.ErrUnexpectedEOF, errors.New("the client is gone")} {
		for encoding, whole := range map[string][]byte{"gzip": zipped(t, "half"), "zstd": framed(t, "half")} {
			for _, sent := range [][]byte{nil, whole[:3], whole} {
				r := httptest.NewRequest("POST", "/", io.MultiReader(bytes.NewReader(sent), iotest.ErrReader(cause)))
				r.Header.Set("Content-Encoding", encoding)
				through(f, func(_ http.ResponseWriter, r *http.Request) {
					if got, err := io.ReadAll(r.Body); !errors.Is(err, cause) {
						t.Errorf("%s cut off after %d bytes of %d: %q, %v, want %v", encoding, len(sent), len(whole), got, err, cause)
					}
				}, r)
			}
		}
	}
}

// An empty body is complete and has no content: many servers name an encoding for it. Any other body is complete only at
// the end of its last frame.
func TestDecompressBodyThatEndsEarly(t *testing.T) {
	f := good(t)(filters.Decompress(filters.DecompressOptions{Requests: true, Responses: true}))
	for encoding, whole := range map[string][]byte{"gzip": zipped(t, "half"), "zstd": framed(t, "half")} {
		for n := range len(whole) + 1 {
			ends := n == 0 || n == len(whole)
			r := httptest.NewRequest("POST", "/", bytes.NewReader(whole[:n]))
			r.Header.Set("Content-Encoding", encoding)
			through(f, func(_ http.ResponseWriter, r *http.Request) {
				if got, err := io.ReadAll(r.Body); (err == nil) != ends {
					t.Errorf("a request of %d bytes of %d in %s: %q, %v", n, len(whole), encoding, got, err)
				}
			}, r)
			served := func() (served bool) {
				defer func() { served = recover() == nil }()
				through(f, func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Encoding", encoding)
					_, _ = w.Write(whole[:n])
				}, httptest.NewRequest("GET", "/", nil))
				return true
			}()
			if served != ends {
				t.Errorf("a response of %d bytes of %d in %s looks complete: %v", n, len(whole), encoding, served)
			}
		}
	}
}

// zipped returns content encoded as gzip.
func zipped(t *testing.T, content string) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.WriteString(w, content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// framed returns content encoded as zstd.
func framed(t *testing.T, content string) []byte {
	var b bytes.Buffer
	w, err := zstd.NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
