package clientside

import (
	"io"
	"net/http"
	"reflect"
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

// ofNetHTTP reports whether w's type is one of net/http. A writer from another package may have the same
// methods, and read or hold back the body in ReadFrom.
func ofNetHTTP(w http.ResponseWriter) bool {
	t := reflect.TypeOf(w)
	return t.Kind() == reflect.Pointer && t.Elem().PkgPath() == "net/http"
}
