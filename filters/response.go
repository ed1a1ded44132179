package filters

import (
	"io"
	"net/http"

	"github.com/culvert-go/culvert/internal/response"
)

// ResponseHooks are what OnResponse calls. A nil hook is skipped. The hooks of
// one answer are called one after the other.
type ResponseHooks struct {
	// Head is called once when the final head is about to be written: never for
	// an interim answer, and with status 101 when the connection is taken over.
	// It may change h. Of nested filters the innermost is called first.
	Head func(r *http.Request, status int, h http.Header)
	// Body is called after Head if the status allows content. It returns a
	// writer that takes the handler's body and writes what is to be sent to w,
	// or nil to leave the body as it is. That writer is closed when the handler
	// has returned, unless that has written less than its Content-Length: the
	// response is broken off then, as net/http's server does it. Its method Flush() error, if it has one, is called when the
	// handler flushes. It sends what it has to send through w, which has a method FlushError() error:
	// the time that the client has for a write (proxy.Options.WriteTimeout) is that of w's calls.
	// Whoever changes the length must delete Content-Length.
	Body func(r *http.Request, status int, h http.Header, w io.Writer) io.WriteCloser
	// End is called once when the handler is done, also if it panicked.
	End func(r *http.Request, s ResponseStats)
}

// ResponseStats describe a finished answer. Status is that of the final head,
// 101 for a connection that was taken over; Bytes counts the content sent; Start is
// when the handler was called and Duration how long it took; Hijacked says whether the
// connection was taken over, Aborted whether the handler panicked.
type ResponseStats = response.Stats

// OnResponse returns a filter that calls the hooks and keeps everything else
// working: flush, hijack, trailers, interim answers, ReadFrom, deadlines.
func OnResponse(hooks ResponseHooks) Filter {
	bound := &response.Hooks{Head: hooks.Head, Body: hooks.Body, End: hooks.End}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			response.Serve(next, w, r, bound)
		})
	}
}
