package clientside

import (
	"crypto/tls"
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

// CloseAfterResponse implements Server. Behind the header only a body that is too large makes net/http's server do so.
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

// Abort is called before a handler panics with http.ErrAbortHandler, behind the header of its response to r. To a client of
// HTTP/1.0 a response without a length ends with its connection: net/http closes that, and the part that was sent would look
// whole. Abort resets the connection (RFC 9112 section 8), but not where a Holder sends another response.
func Abort(w http.ResponseWriter, r *http.Request) {
	s, ofNetHTTP := ServerOf(w).(netHTTP)
	if r.ProtoAtLeast(1, 1) || !ofNetHTTP || s.Header()["Content-Length"] != nil || holdsHeader(w) {
		return
	}
	conn, _, err := http.NewResponseController(s.ResponseWriter).Hijack()
	if err != nil {
		return
	}
	if t, ok := conn.(*tls.Conn); ok {
		conn = t.NetConn() // without the alert of a proper end
	}
	if t, ok := conn.(interface{ SetLinger(sec int) error }); ok {
		_ = t.SetLinger(0)
	}
	_ = conn.Close()
}

// Holder is the http.ResponseWriter of a filter that may send another response than its handler's, though that has
// written a header and is aborted then.
type Holder interface {
	// HoldsHeader reports whether the header was not passed on yet, though it may have been written.
	HoldsHeader() bool
}

// holdsHeader reports whether w is or wraps a Holder that holds the header.
func holdsHeader(w http.ResponseWriter) bool {
	for {
		if h, ok := w.(Holder); ok && h.HoldsHeader() {
			return true
		}
		outer, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return false
		}
		w = outer.Unwrap()
	}
}
