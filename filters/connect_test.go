package filters_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/filters"
)

// The data after a CONNECT, of a WebSocket over HTTP/2 for instance, and after the 2xx response to it are those of a
// tunnel, and no body (RFC 9110 section 9.3.6). No filter may bound, copy or encode them.
func TestTunnelsOfCONNECT(t *testing.T) {
	copied := make(chan struct{}, 1)
	mirror, err := filters.NewMirror(filters.MirrorOptions{Timeout: time.Minute, To: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { copied <- struct{}{} })})
	if err != nil {
		t.Fatal(err)
	}
	var encoded bytes.Buffer
	w := gzip.NewWriter(&encoded)
	_, _ = io.WriteString(w, "decoded")
	_ = w.Close()
	for name, f := range map[string]culvert.Filter{
		"BodyLimit":  good(t)(filters.BodyLimit(4)),
		"Mirror":     mirror.Filter,
		"Compress":   good(t)(filters.Compress(filters.CompressOptions{})),
		"Decompress": good(t)(filters.Decompress(filters.DecompressOptions{Requests: true, Responses: true})),
	} {
		r := httptest.NewRequest(http.MethodConnect, "/", io.NopCloser(strings.NewReader(strings.Repeat("up", 1000))))
		r.ProtoMajor, r.ProtoMinor, r.ContentLength = 2, 0, -1
		r.Header[":protocol"] = []string{"websocket"}
		r.Header.Set("Accept-Encoding", "gzip")
		r.Header.Set("Content-Encoding", "gzip")
		down := strings.Repeat("down", 1000)
		if name == "Decompress" {
			down = encoded.String()
		}
		resp, got := through(f, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			if name == "Decompress" {
				w.Header().Set("Content-Encoding", "gzip")
			}
			if up, err := io.ReadAll(r.Body); err != nil || len(up) != 2000 {
				t.Errorf("%s: the target received %d bytes, %v", name, len(up), err)
			}
			_, _ = io.WriteString(w, down)
		}, r)
		if resp.StatusCode != 200 || got != down {
			t.Errorf("%s: the client received a %d with %d bytes", name, resp.StatusCode, len(got))
		}
	}
	if err := mirror.Close(t.Context()); err != nil || len(copied) > 0 {
		t.Errorf("%d requests were mirrored, %v", len(copied), err)
	}
}
