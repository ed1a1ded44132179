package cgi_test

import (
	"bufio"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/culvert-go/culvert/nginx/internal/cgi"
)

// pieces are what was written at once.
type pieces []string

func (p *pieces) Write(b []byte) (int, error) {
	*p = append(*p, string(b))
	return len(b), nil
}

// received is a body whose next bytes were.
type received struct{ io.ReadCloser }

func (received) Ready() bool    { return true }
func (received) Received() bool { return true }

// What of a body was received is not sent by itself; what has to be waited for is sent as it comes.
func TestCopyBody(t *testing.T) {
	awaited := io.NopCloser(iotest.OneByteReader(strings.NewReader("abc")))
	for _, test := range []struct {
		body io.ReadCloser
		want pieces
	}{{awaited, pieces{"a", "b", "c"}}, {received{io.NopCloser(iotest.OneByteReader(strings.NewReader("abc")))}, pieces{"abc"}}} {
		var got pieces
		w := bufio.NewWriter(&got)
		if err := cgi.CopyBody(w, &http.Request{Body: test.body}); err != nil {
			t.Error(err)
		}
		_ = w.Flush()
		if !slices.Equal(got, test.want) {
			t.Errorf("wrote %q, want %q", got, test.want)
		}
	}
}
