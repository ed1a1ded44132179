package proxy

import (
	"net/http"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/http1"
	"github.com/culvert-go/culvert/internal/replay"
)

// checkLength refuses a request over HTTP/2 whose Content-Length can't be that of its content: it is malformed, and must not
// be forwarded (RFC 9113 section 8.1.1). net/http's server of HTTP/1 refuses such a request. That of HTTP/2 takes a field
// that is no number for 0, looks at the first one alone, and at none where the stream ends with the header: the target would
// get an empty request, or one of another length, as a whole one.
//
// A filter that takes a body away leaves http.NoBody, perhaps beside the client's field.
func checkLength(in *http.Request) *culvert.Error {
	if in.ProtoMajor < 2 {
		return nil
	}
	length, err := http1.ContentLength(in.Header["Content-Length"])
	if err != nil {
		return &culvert.Error{Kind: culvert.BadRequest, Err: err}
	}
	if length > 0 && in.ContentLength == 0 && in.Body != nil && in.Body != http.NoBody {
		return &culvert.Error{Kind: culvert.BadRequest, Err: replay.ErrContentLength}
	}
	return nil
}
