package replay

import (
	"net/http"

	"github.com/culvert-go/culvert/internal/header"
)

// nameTrailers notes the names that are known: net/http writes the values into the client's map whenever the body's end is
// read, for an attempt that has ended too.
func (b *Body) nameTrailers() {
	b.trailers = b.trailers[:0]
	for name := range b.in.Trailer {
		b.trailers = append(b.trailers, name)
	}
}

// chunked is the framing that trailers need over HTTP/1.1; HTTP/2 ignores it and keeps the length. It is never
// written to.
var chunked = []string{"chunked"}

// attachTrailers gives out the trailers that the policy lets pass.
func (a *Attempt) attachTrailers(out *http.Request) {
	if a.body.in.Trailer == nil {
		return
	}
	out.Trailer = make(http.Header)
	for _, name := range a.body.trailers {
		if a.relays(name) {
			out.Trailer[name] = nil
		}
	}
	if len(out.Trailer) > 0 && out.ContentLength != 0 { // HTTP/2 has both; and net/http drops an empty body of a GET with its trailers
		out.TransferEncoding = chunked
	}
	a.trailer = out.Trailer
}

// relays reports whether a trailer of the client is sent. Those that may not be are dropped, as a recipient may do with
// any (RFC 9110 section 6.5.1).
func (a *Attempt) relays(name string) bool {
	return header.ForwardsRequestTrailer(name) && (a.relayed == nil || a.relayed(name))
}

// copyTrailers copies the values that were received with the end of the body.
func (a *Attempt) copyTrailers() {
	if a.trailer == nil {
		return
	}
	for name, values := range a.body.in.Trailer {
		if a.relays(name) {
			a.trailer[name] = values
		}
	}
}
