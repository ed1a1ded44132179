package proxy

import (
	"net/http"
	"net/textproto"

	"github.com/culvert-go/culvert/internal/header"
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

// nameTrailers notes the names that are known: net/http writes the values into the client's map whenever
// the body's end is read, for a try that has ended too.
func (s *bodySource) nameTrailers() {
	s.trailers = s.trailers[:0]
	for name := range s.in.Trailer {
		s.trailers = append(s.trailers, name)
	}
}

// attachTrailers gives out the trailers that the policy lets pass.
func (b *requestBody) attachTrailers(out *http.Request) {
	if b.source.in.Trailer == nil {
		return
	}
	out.Trailer = make(http.Header)
	for _, name := range b.source.trailers {
		if b.relays(name) {
			out.Trailer[name] = nil
		}
	}
	if len(out.Trailer) > 0 && out.ContentLength != 0 { // HTTP/2 has both; and net/http drops an empty body of a GET with its trailers
		out.TransferEncoding = chunked
	}
	b.out = out.Trailer
}

// chunked is the framing that trailers need over HTTP/1.1; HTTP/2 ignores it and keeps the length. It is never
// written to.
var chunked = []string{"chunked"}

// relays reports whether a trailer of the client is sent. Those that may not be are dropped, as
// a recipient may do with any (RFC 9110 section 6.5.1).
func (b *requestBody) relays(name string) bool {
	return header.ForwardsRequestTrailer(name) && (b.trailer == nil || b.trailer(name))
}

// copyTrailers copies the values that have come with the end of the body.
func (b *requestBody) copyTrailers() {
	if b.out == nil {
		return
	}
	for name, values := range b.source.in.Trailer {
		if b.relays(name) {
			b.out[name] = values
		}
	}
}
