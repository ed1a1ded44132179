package header

import (
	"context"
	"net/http"
)

// CloneRequest returns a copy of r with a context and a header of its own, for a filter that changes them
// and sends the body on. r.Clone would copy the trailers too, which net/http puts into r's own map at the
// end of the body: a copy of that map never gets their values.
func CloneRequest(ctx context.Context, r *http.Request) *http.Request {
	out := r.Clone(ctx)
	out.Trailer = r.Trailer
	return out
}
