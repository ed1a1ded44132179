package filters

import (
	"errors"
	"net/http"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/clientbody"
)

// BodyLimit returns a filter that bounds the body of each request to max bytes. If the
// Content-Length is larger, the filter responds with 413 at once. A body of unknown
// length that turns out to be larger fails to be read with an *http.MaxBytesError, to
// which package proxy responds with 413. If the target has responded by then, that response
// is served, and over HTTP/1 a client that leaves meanwhile is noticed by a write only. The
// data of a CONNECT are those of a tunnel, and are not bounded. BodyLimit returns an error
// if max is negative.
func BodyLimit(max int64) (culvert.Filter, error) {
	if max < 0 {
		return nil, errors.New("filters: BodyLimit is negative")
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.ContentLength > max {
				clientbody.RefuseRest(w, r)
				writeRefusal(w, r, http.StatusRequestEntityTooLarge)
				return
			}
			if r.ContentLength < 0 && r.Body != nil && r.Method != http.MethodConnect {
				limited := *r
				limited.Body = http.MaxBytesReader(w, r.Body, max)
				r = &limited
			}
			next.ServeHTTP(w, r)
		})
	}, nil
}
