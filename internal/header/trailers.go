package header

import (
	"io"
	"net/http"
	"net/textproto"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// ForwardsTrailer reports whether a trailer of this canonical name may be sent past this hop:
// not what belongs to one connection, frames or routes the message, authenticates, says how
// the request or the content is to be processed, or controls the response, since a recipient
// that merges trailers would take it for a header field (RFC 9110 section 6.5.1).
func ForwardsTrailer(name string) bool {
	return httpguts.ValidHeaderFieldName(name) && httpguts.ValidTrailerHeader(name) && !isHopByHop(name) && !controls(name)
}

// ForwardsRequestTrailer is ForwardsTrailer for those of a client, which also must not claim to
// be a proxy in them (IsClaim).
func ForwardsRequestTrailer(name string) bool {
	return !IsClaim(name) && !strings.HasPrefix(name, "X-Forwarded-") && ForwardsTrailer(name)
}

// controls reports whether the field, which httpguts lets through, controls the processing of
// the message all the same (RFC 7231 section 7.1, RFC 6265).
func controls(name string) bool {
	switch name {
	case "Age", "Cookie", "Date", "Expires", "Location", "Retry-After", "Set-Cookie", "Vary", "Warning":
		return true
	}
	return false
}

// Listed returns the canonical names of the fields that Connection lists, without those whose
// listing has no effect and those that belong to the connection in any case; nil if there are none.
func Listed(h http.Header) (names []string) {
	for _, line := range h["Connection"] {
		for option := range strings.SplitSeq(line, ",") {
			switch option = textproto.TrimString(option); strings.ToLower(option) {
			case "", "close", "keep-alive", "upgrade", "te", "trailer":
				continue
			}
			if name := textproto.CanonicalMIMEHeaderKey(option); !IsEndToEnd(name) && !isHopByHop(name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// TrailerGuard returns body, r's, such that the trailers that Connection lists are taken out of
// r.Trailer at its end; net/http puts them there, announced or not. It must be called before
// Connection is taken out of r.Header, and returns body itself where nothing is listed.
func TrailerGuard(r *http.Request, body io.ReadCloser) io.ReadCloser {
	if r.ContentLength >= 0 || body == nil {
		return body
	}
	return WithoutTrailers(r, body, Listed(r.Header))
}

// WithoutTrailers returns body, r's, such that the trailers of these canonical names, and those that differ from them in
// underscores for hyphens alone, are taken out of r.Trailer at its end. It returns body itself where there are no names, or
// no trailers can follow it. Over HTTP/2 they can follow a body of a known length.
func WithoutTrailers(r *http.Request, body io.ReadCloser, names []string) io.ReadCloser {
	if r.ContentLength == 0 || r.ContentLength > 0 && r.ProtoMajor == 1 || body == nil || len(names) == 0 {
		return body
	}
	if r.Trailer == nil {
		r.Trailer = make(http.Header) // which is shared with copies of r
	}
	g := &trailerGuard{body, r.Trailer, names}
	g.remove()
	return g
}

type trailerGuard struct {
	io.ReadCloser
	trailers http.Header
	names    []string
}

func (g *trailerGuard) Read(p []byte) (int, error) {
	n, err := g.ReadCloser.Read(p)
	if err == io.EOF {
		g.remove()
	}
	return n, err
}

func (g *trailerGuard) remove() {
	for _, name := range g.names {
		RemoveSpellings(g.trailers, name)
	}
}
