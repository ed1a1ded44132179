package proxy

import (
	"net/http"
	"net/textproto"
)

// NoTrailers forwards no trailer: for Options.RequestTrailer and ResponseTrailer.
func NoTrailers(string) bool { return false }

// OnlyTrailers forwards the trailers of these names, without regard to case.
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

// attachTrailers gives out the trailers that the policy lets pass. Where it lets
// all pass, out shares the client's map, in which the values appear at the end of
// the body.
func (b *requestBody) attachTrailers(out *http.Request) {
	if b.trailer == nil || b.source.in.Trailer == nil {
		return
	}
	out.Trailer = make(http.Header)
	for name := range b.source.in.Trailer {
		if b.trailer(name) {
			out.Trailer[name] = nil
		}
	}
	b.out = out.Trailer
}

// copyTrailers copies the values that have come with the end of the body.
func (b *requestBody) copyTrailers() {
	if b.out == nil {
		return
	}
	for name, values := range b.source.in.Trailer {
		if b.trailer(name) {
			b.out[name] = values
		}
	}
}
