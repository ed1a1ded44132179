package response

import (
	"io"
	"net/http"

	"github.com/culvert-go/culvert"
)

// Hooks are the functions of a filter that Serve calls for a response. A nil hook is skipped. Each hook but
// Trailer is called with the request that Serve was called with, so that a filter without a state of its own for each
// request can use one Hooks for all.
type Hooks struct {
	// Status is called once before Header, and returns the status that is sent in place of
	// status. It may change h. It is not called for a hijack.
	Status func(r *http.Request, status int, h http.Header) int
	// Header is called once, when the final header is about to be written: never
	// for an interim response, and with status 101 when the connection is
	// hijacked, 200 for CONNECT. It may change h. Of nested filters the innermost is called first.
	Header func(r *http.Request, status int, h http.Header)
	// Body is called after Header if the status allows content. It returns a
	// transform, or nil to leave the body unchanged. The handler's body is written to
	// the transform, which writes what is to be sent to w. The transform is closed
	// when the handler has returned. If the handler has written less than its
	// Content-Length, or a Write or Flush of the transform has failed, the transform is not closed
	// and the response is aborted. If the
	// transform has a method Flush() error, it is called whenever the handler flushes.
	// w has a method FlushError() error, by which a transform sends what it has written
	// before it fails. The transform must send everything through w: the timeout of the
	// client's writes applies to the calls of w. A transform that discards the handler's body, and sends
	// another in its place, has a method Discards() bool; see the function Discards.
	Body func(r *http.Request, status int, h http.Header, w io.Writer) io.WriteCloser
	// Trailer is called after the transform that Body has returned was closed, with the header, which then holds the
	// trailers of the handler: those that it has not announced have the prefix http.TrailerPrefix. It may change them.
	Trailer func(h http.Header)
	// Around is called before End if the handler was ended by a panic of the wrapped writer, that of an outer filter for
	// instance, and not by one of its own. A panic in ReadFrom counts as the handler's own: it may be that of the source.
	Around func(r *http.Request)
	// End is called once when the handler has returned or panicked.
	End func(r *http.Request, s culvert.ResponseStats)
}
