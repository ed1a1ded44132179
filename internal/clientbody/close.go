package clientbody

import (
	"io"
	"net/http"
	"strings"
)

// closeBehindResponse has net/http's server close the connection when the response is sent, though its header
// may have been sent before. Only a body that is too large can tell it so.
func closeBehindResponse(w http.ResponseWriter) {
	tooLarge := http.MaxBytesReader(innermost(w), io.NopCloser(strings.NewReader("x")), 0)
	_, _ = tooLarge.Read(make([]byte, 1))
}

// innermost returns the server's writer, which w may wrap.
func innermost(w http.ResponseWriter) http.ResponseWriter {
	for {
		outer, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return w
		}
		w = outer.Unwrap()
	}
}
