package filters_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/culvert-go/culvert/filters"
)

// A goroutine of the handler may read the body while the handler returns, as that of a transport does. The decoder is
// not freed before the Read returns, and no Read begins after the handler has returned.
func TestDecompressReaderOutlivesTheHandler(t *testing.T) {
	decompress, err := filters.Decompress(filters.DecompressOptions{Requests: true})
	if err != nil {
		t.Fatal(err)
	}
	for name, end := range map[string]func(io.Closer){
		"the handler returns": func(io.Closer) {},
		"the body is closed":  func(body io.Closer) { body.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			encoded, send := io.Pipe()
			read := make(chan error)
			h := decompress(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				go func() {
					for {
						if _, err := r.Body.Read(make([]byte, 100)); err != nil {
							read <- err
							return
						}
					}
				}()
				z, err := zstd.NewWriter(send)
				if err != nil {
					t.Error(err)
				}
				_, _ = z.Write(bytes.Repeat([]byte("x"), 1000))
				_ = z.Flush()
				end(r.Body)
			}))
			r := httptest.NewRequest("POST", "/", encoded)
			r.Header.Set("Content-Encoding", "zstd")
			h.ServeHTTP(httptest.NewRecorder(), r)
			send.Close()
			if err := <-read; err == nil || err == io.EOF {
				t.Errorf("the reader ends with %v", err)
			}
		})
	}
}
