package response

import (
	"io"
	"net/http"

	"github.com/culvert-go/culvert/internal/clientside"
)

// Plain reports whether bytes may be copied from a socket to the client's socket (splice) without any filter
// that should see them: w is a server's own writer for HTTP/1, and the Hooks around it, if any, leave the body
// unchanged. It must be called after WriteHeader.
func Plain(w http.ResponseWriter) bool {
	for {
		own, ok := w.(*writer)
		if !ok {
			_, reads := w.(io.ReaderFrom)
			return reads && clientside.OfServer(w)
		}
		if own.body != nil {
			return false
		}
		w = own.inner
	}
}
