package filters_test

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
)

// To a client of HTTP/1.0 a compressed body, which has no length, ends with the connection: that is reset where the body was
// cut off.
func TestFileThatIsCutOffOverHTTP10(t *testing.T) {
	leaktest.Check(t)
	page := make([]byte, 400<<10) // most of it is sent before it is cut off
	random := rand.New(rand.NewPCG(1, 2))
	for i := range page {
		page[i] = ' ' + byte(random.IntN(95))
	}
	compress := good(t)(filters.Compress(filters.CompressOptions{}))
	for _, readable := range []int{300 << 10, len(page)} {
		front := wiretest.Serve(t, compress(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.ServeContent(w, r, "page.txt", time.Time{}, brokenFile{bytes.NewReader(page), int64(readable)})
		})))
		c := wiretest.Dial(t, front)
		c.Send("GET / HTTP/1.0\r\nAccept-Encoding: gzip\r\n\r\n")
		if got, err := io.ReadAll(c.R); len(got) == 0 || (err != nil) != (readable < len(page)) {
			t.Errorf("%d bytes of the file are readable: the client got %d bytes, %v", readable, len(got), err)
		}
	}
}
