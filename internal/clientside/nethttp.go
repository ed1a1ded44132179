package clientside

import (
	"io"
	"net/http"
	"strings"
)

// netHTTP is the Server of a writer that is none itself: net/http's.
type netHTTP struct{ http.ResponseWriter }

// WriteContinue implements Server. The writer is net/http's own: wrappers need not know of interim responses.
func (s netHTTP) WriteContinue() {
	writeInterim(s.ResponseWriter, http.StatusContinue, nil, false) // HTTP/2 sends its own
}

// CloseAfterResponse implements Server. Behind the header only a body that is too large can tell net/http's server so.
func (s netHTTP) CloseAfterResponse() {
	tooLarge := http.MaxBytesReader(s.ResponseWriter, io.NopCloser(strings.NewReader("x")), 0)
	_, _ = tooLarge.Read(make([]byte, 1))
}
