package response

import (
	"io"
	"net/http"
	"time"
)

// Hooks are what a filter wants to know of answers. A nil hook is skipped. Each is called with the
// request that Serve was given, so that one Hooks can serve all requests of a filter that keeps
// nothing between its hooks.
type Hooks struct {
	// Status is called once before Head, and returns the status that is sent in the place
	// of the one that it is given. It may change h. It is not called for a hijack.
	Status func(r *http.Request, status int, h http.Header) int
	// Head is called once, when the final head is about to be written: never
	// for an interim answer, and with status 101 when the connection is
	// hijacked. It may change h. Where filters are nested the innermost is
	// called first.
	Head func(r *http.Request, status int, h http.Header)
	// Body is called after Head if the status allows content. It returns the
	// writer that takes the handler's body and writes what is to be sent to w,
	// or nil to leave the body alone. The result is closed when the handler
	// has returned, unless that has written less than the Content-Length that it
	// has announced: the response is broken off then. If it has a method Flush() error, that is called whenever
	// the handler flushes. w has a method FlushError() error, for what it has
	// written before it fails. Nothing is to be sent past w: the client's time for a write is bounded in w's calls.
	Body func(r *http.Request, status int, h http.Header, w io.Writer) io.WriteCloser
	// Around is called before End where the panic that has ended the handler is one of the writer around, of a filter
	// outside of this one for instance, and not the handler's own. One in ReadFrom counts as the handler's: it may be
	// that of the source.
	Around func(r *http.Request)
	// End is called once when the handler is done, also when it panicked.
	End func(r *http.Request, s Stats)
}

// Stats describe a finished answer.
type Stats struct {
	// Status is the status of the final head: 101 if the connection was
	// hijacked, 200 if the handler wrote nothing.
	Status int
	// Bytes counts the content that was sent, after every inner transform, not
	// counting heads and chunk framing. 0 for HEAD and for a hijacked connection.
	Bytes int64
	// Start is when the handler was called, Duration the time until it was done.
	Start    time.Time
	Duration time.Duration
	// Hijacked says whether the handler took the connection over.
	Hijacked bool
	// Aborted says whether the handler panicked, with http.ErrAbortHandler or
	// anything else.
	Aborted bool
}
