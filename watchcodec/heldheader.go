package watchcodec

import (
	"maps"
	"net/http"
	"slices"
)

// heldHeader is the header of a response that is sent later than its handler has called WriteHeader. What the handler puts into
// the map meanwhile is none of its fields, as it would be none behind net/http's WriteHeader. It may be a trailer, which must not
// become a field (RFC 9110 section 6.5.1).
type heldHeader struct{ fields http.Header }

// hold is called in the place of WriteHeader.
func (h *heldHeader) hold(header http.Header) { h.fields = header.Clone() }

// restore makes header what it was, and returns what was put into it since.
func (h *heldHeader) restore(header http.Header) (later http.Header) {
	later = make(http.Header)
	for name, values := range header {
		if !slices.Equal(values, h.fields[name]) {
			later[name] = values
		}
	}
	clear(header)
	maps.Copy(header, h.fields)
	return later
}
