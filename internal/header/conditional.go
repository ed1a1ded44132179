package header

import "net/http"

// RemoveConditions deletes from h, the header of a GET, what could make its response a partial one or none (RFC 9110 sections
// 13.1 and 14.2). It is for a request that takes over the header of another one.
func RemoveConditions(h http.Header) {
	for _, name := range []string{"If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since", "If-Range", "Range"} {
		delete(h, name)
	}
}
