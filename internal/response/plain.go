package response

import (
	"io"
	"net/http"
	"reflect"
)

// Plain reports whether what is read from a socket may go to w's without being seen: w is a writer of
// net/http for HTTP/1, with no more around it than hooks that leave the body alone. It is to be
// asked behind WriteHeader.
func Plain(w http.ResponseWriter) bool {
	for {
		own, ok := w.(*writer)
		if !ok {
			_, reads := w.(io.ReaderFrom)
			return reads && ofHTTP(w)
		}
		if own.body != nil {
			return false
		}
		w = own.inner
	}
}

// ofHTTP reports whether w is net/http's own. A foreign writer may have all of its methods, and see
// the body in ReadFrom, or hold it back there.
func ofHTTP(w http.ResponseWriter) bool {
	t := reflect.TypeOf(w)
	return t.Kind() == reflect.Pointer && t.Elem().PkgPath() == "net/http"
}
