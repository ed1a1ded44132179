package proxy

import (
	"net/http"
	"net/textproto"
)

// OnlyTrailers returns a function for Options.RequestTrailer and Options.ResponseTrailer that forwards
// the trailers of these names, compared without case. Without names it forwards none.
func OnlyTrailers(names ...string) func(name string) bool {
	list := make(map[string]bool, len(names))
	for _, name := range names {
		list[textproto.CanonicalMIMEHeaderKey(name)] = true
	}
	return func(name string) bool { return list[textproto.CanonicalMIMEHeaderKey(name)] }
}

// shareTrailers makes a map for trailers that are not announced: net/http sets
// them on the very *Request that it made, and a copy shares a map.
func shareTrailers(in *http.Request) {
	if in.Trailer == nil && in.ContentLength < 0 {
		in.Trailer = make(http.Header)
	}
}
