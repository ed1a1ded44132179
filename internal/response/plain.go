package response

import (
	"io"
	"net/http"
	"reflect"
)

// Plain reports whether bytes may be copied from a socket to the client's socket (splice) without any filter
// that should see them: w is net/http's writer for HTTP/1, and the Hooks around it, if any, leave the body
// unchanged. It must be called after WriteHeader.
func Plain(w http.ResponseWriter) bool {
	for {
		own, ok := w.(*writer)
		if !ok {
			_, reads := w.(io.ReaderFrom)
			return reads && ofNetHTTP(w)
		}
		if own.body != nil {
			return false
		}
		w = own.inner
	}
}

// ofNetHTTP reports whether w's type is one of net/http. A writer from another package may have the same
// methods, and read or hold back the body in ReadFrom.
func ofNetHTTP(w http.ResponseWriter) bool {
	t := reflect.TypeOf(w)
	return t.Kind() == reflect.Pointer && t.Elem().PkgPath() == "net/http"
}
