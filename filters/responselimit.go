package filters

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strconv"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/header"
	"github.com/culvert-go/culvert/internal/localerror"
	"github.com/culvert-go/culvert/internal/record"
	"github.com/culvert-go/culvert/internal/response"
)

// ResponseLimit returns a filter that bounds the content of each response to max bytes. A response with a larger
// Content-Length is replaced by a 502, or by the grpc-status for it, without any of its header fields; those that outer
// filters have set remain. One of unknown length that turns out to be larger is
// aborted, so that no client takes a part of it for the whole: over HTTP/1.1 its last chunk is missing, over HTTP/2 the stream
// is reset. Streams of events end so as well.
//
// The culvert.Result has the failure as a culvert.Error: of the Kind HeaderInvalid for a 502, Internal for a response
// that was aborted. Neither counts against the target.
//
// The content is counted as the next handler writes it: outside of Decompress the decoded content, inside of
// Compress that before the encoding. Responses to HEAD, upgrades and CONNECT have no content. A response whose
// Content-Length is not larger is not touched, and is sent as fast as without the filter. ResponseLimit returns an error
// if max is negative.
func ResponseLimit(max int64) (culvert.Filter, error) {
	if max < 0 {
		return nil, errors.New("filters: ResponseLimit is negative")
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodConnect || r.Method == http.MethodHead {
				next.ServeHTTP(w, r)
				return
			}
			l := &limitedResponse{max: max}
			if h := w.Header(); len(h) > 0 {
				l.outer = h.Clone()
			}
			response.Serve(next, w, r, &response.Hooks{Status: l.status, Body: l.body, Trailer: l.trailer})
		})
	}, nil
}

// limitedResponse is the state of one response.
type limitedResponse struct {
	max      int64
	outer    http.Header // the header that the filter was called with; nil: it was empty
	known    bool        // the length is known, and not larger than max
	replaced bool        // the response is the 502
	grpc     bool        // which is one of gRPC
}

// status replaces the header of a response that is known to be too large.
func (l *limitedResponse) status(r *http.Request, status int, h http.Header) int {
	lines := h["Content-Length"]
	if len(lines) == 0 || status < 200 || status == http.StatusNoContent || status == http.StatusNotModified {
		return status
	}
	length, err := strconv.ParseInt(lines[0], 10, 64)
	if err != nil || length < 0 {
		return status // it is counted
	}
	if length <= l.max {
		l.known = true
		return status
	}
	l.replaced = true
	recordTooLarge(r, fmt.Errorf("the response has %d bytes of content, more than ResponseLimit's %d", length, l.max))
	clear(h) // it was that of the response, which may be kept in caches
	maps.Copy(h, l.outer)
	if localerror.IsGRPC(r) {
		l.grpc = true
		return localerror.SetGRPC(h, r, http.StatusBadGateway)
	}
	h["Content-Type"] = []string{"text/plain; charset=utf-8"}
	h["X-Content-Type-Options"] = []string{"nosniff"}
	return http.StatusBadGateway
}

// recordTooLarge records the failure for the outer filters, unless there was another.
func recordTooLarge(r *http.Request, err error) {
	known := record.From(r.Context())
	if known == nil || known.Err != nil {
		return
	}
	e := &culvert.Error{Kind: culvert.HeaderInvalid, BytesSent: true, Err: err}
	if n := len(known.Attempts); n > 0 {
		e.Target = known.Attempts[n-1].Target
	}
	known.Err = e
}

func (l *limitedResponse) body(_ *http.Request, _ int, _ http.Header, w io.Writer) io.WriteCloser {
	switch {
	case l.grpc:
		return response.Discard
	case l.replaced:
		return &pageBody{w, []byte(http.StatusText(http.StatusBadGateway) + "\n")}
	case l.known:
		return nil
	}
	return &limitedBody{w: w, left: l.max}
}

func (l *limitedResponse) trailer(h http.Header) {
	if l.replaced {
		header.DeleteTrailers(h)
	}
}

// errTooLarge is that of content of unknown length.
var errTooLarge = errors.New("the response has more content than ResponseLimit allows")

// limitedBody is a transform that fails when the content is too large, also at its end: a handler may ignore errors of writes.
type limitedBody struct {
	w    io.Writer
	left int64
	err  error
}

func (b *limitedBody) Write(p []byte) (int, error) {
	if int64(len(p)) > b.left {
		b.err = errTooLarge
	}
	if b.err != nil {
		return 0, b.err
	}
	b.left -= int64(len(p))
	return b.w.Write(p)
}

func (b *limitedBody) Close() error { return b.err }
