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

// A body that breaks off before an encoding's first byte, or between two of its frames, is no whole one: decoders
// take io.ErrUnexpectedEOF for the end there.
func TestDecompressBodyThatBreaksOff(t *testing.T) {
	var zipped, z bytes.Buffer
	g := gzip.NewWriter(&zipped)
	_, _ = io.WriteString(g, "half")
	_ = g.Close()
	e, err := zstd.NewWriter(&z)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(e, "half")
	_ = e.Close()
	f := good(t)(filters.Decompress(filters.DecompressOptions{Requests: true}))
	for _, cause := range []error{io.ErrUnexpectedEOF, errors.New("the client is gone")} {
		for encoding, whole := range map[string][]byte{"gzip": zipped.Bytes(), "zstd": z.Bytes()} {
			for _, sent := range [][]byte{nil, whole[:3], whole} {
				r := httptest.NewRequest("POST", "/", io.MultiReader(bytes.NewReader(sent), iotest.ErrReader(cause)))
				r.Header.Set("Content-Encoding", encoding)
				through(f, func(_ http.ResponseWriter, r *http.Request) {
					if got, err := io.ReadAll(r.Body); !errors.Is(err, cause) {
						t.Errorf("%s broken off behind %d bytes of %d: %q, %v, want %v", encoding, len(sent), len(whole), got, err, cause)
					}
				}, r)
			}
		}
	}
}
