package watchcodec

import (
	"maps"
	"net/http"
	"slices"
)

// heldHeader is the header of a response that is sent later than its handler has called
// WriteHeader. Fields that the handler sets meanwhile do not belong to it, as with net/http after
// WriteHeader. They may be trailers, which must not become header fields (RFC 9110 section 6.5.1).
type heldHeader struct{ fields http.Header }

// hold is called instead of WriteHeader.
func (h *heldHeader) hold(header http.Header) { h.fields = header.Clone() }

// restore makes header what it was when hold was called, and returns the fields that were set
// since.
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
