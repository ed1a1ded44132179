package filters

import (
	"io"
	"net/http"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/response"
)

// ResponseHooks are the functions that OnResponse calls. A nil hook is skipped. The hooks of
// one response are called one after the other.
type ResponseHooks struct {
	// Header is called once when the final header is about to be written: never for
	// an interim response, and with status 101 when the connection is hijacked. It may
	// change h. Of nested filters the innermost is called first.
	Header func(r *http.Request, status int, h http.Header)
	// Body is called after Header if the status allows content. It returns a transform, or
	// nil to leave the body unchanged. The handler's body is written to the transform,
	// which writes what is to be sent to w. If the transform changes the length, Header or
	// Body must delete Content-Length.
	//
	// The transform is closed when the handler has returned. If the handler has written less
	// than its Content-Length, or a Write or Flush of the transform has failed, the transform is not closed and
	// the response is aborted, as by net/http's server. If the transform has a method Flush() error, it is
	// called when the handler flushes. w has a method FlushError() error. The transform
	// must send everything through w: the timeout of the client's writes
	// (proxy.Options.WriteTimeout) applies to the calls of w.
	//
	// A transform that discards the handler's body and sends another in its place may have a
	// method Discards() bool. If it returns true, then and later, package proxy does not wait for
	// the rest of the body: neither a target that is silent nor one that breaks off matters. It is called
	// before the first Write and after each. The transform is closed. Those of filters inside of this
	// one are not closed, since they have not received the whole body.
	Body func(r *http.Request, status int, h http.Header, w io.Writer) io.WriteCloser
	// End is called once when the handler has returned or panicked.
	End func(r *http.Request, s culvert.ResponseStats)
}

// OnResponse returns a filter that calls the hooks. It preserves the other features of the
// ResponseWriter: flush, hijack, trailers, interim responses, ReadFrom and deadlines.
func OnResponse(hooks ResponseHooks) culvert.Filter {
	bound := &response.Hooks{Header: hooks.Header, Body: hooks.Body, End: hooks.End}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			response.Serve(next, w, r, bound)
		})
	}
}
