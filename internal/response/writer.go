// Package response is the one wrapper around http.ResponseWriter. Whatever
// looks at an answer, or changes it, does so through the hooks of this package,
// so that flush, hijack, trailers, interim answers, ReadFrom and deadlines keep
// working through any number of filters.
package response

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"

	"github.com/culvert-go/culvert/internal/bufpool"
)

// Hooks are what a filter wants to know of an answer. A nil hook is skipped.
type Hooks struct {
	// Status is called once before Head, and returns the status that is sent in the place
	// of the one that it is given. It may change h. It is not called for a hijack.
	Status func(status int, h http.Header) int
	// Head is called once, when the final head is about to be written: never
	// for an interim answer, and with status 101 when the connection is
	// hijacked. It may change h. Where filters are nested the innermost is
	// called first.
	Head func(status int, h http.Header)
	// Body is called after Head if the status allows content. It returns the
	// writer that takes the handler's body and writes what is to be sent to w,
	// or nil to leave the body alone. The result is closed when the handler
	// has returned; if it has a method Flush() error, that is called whenever
	// the handler flushes.
	Body func(status int, h http.Header, w io.Writer) io.WriteCloser
	// End is called once when the handler is done, also when it panicked.
	End func(Stats)
}

// Stats describe a finished answer.
type Stats struct {
	// Status is the status of the final head: 101 if the connection was
	// hijacked, 200 if the handler wrote nothing.
	Status int
	// Bytes counts the content that was sent, after every inner transform, not
	// counting heads and chunk framing. 0 for HEAD and for a hijacked connection.
	Bytes int64
	// Hijacked says whether the handler took the connection over.
	Hijacked bool
	// Aborted says whether the handler panicked, with http.ErrAbortHandler or
	// anything else.
	Aborted bool
}

// Serve calls next with w wrapped by hooks.
func Serve(next http.Handler, w http.ResponseWriter, r *http.Request, hooks Hooks) {
	rw := &writer{inner: w, hooks: hooks, headOnly: r.Method == http.MethodHead, aborted: true}
	defer rw.end()
	next.ServeHTTP(rw, r)
	rw.finish()
	rw.aborted = false
}

// writer is the ResponseWriter that Serve hands to the next handler.
type writer struct {
	inner    http.ResponseWriter
	hooks    Hooks
	body     io.WriteCloser // the transform, nil for none
	status   int            // of the final head, 0 before it
	bytes    int64
	headOnly bool // the request was HEAD
	hijacked bool
	aborted  bool
}

// Unwrap serves http.ResponseController.
func (w *writer) Unwrap() http.ResponseWriter { return w.inner }

func (w *writer) Header() http.Header { return w.inner.Header() }

// WriteHeader passes interim answers on and runs the head hook before a final
// one. A second final head is passed on too, so that net/http reports it.
func (w *writer) WriteHeader(status int) {
	interim := status >= 100 && status <= 199 && status != http.StatusSwitchingProtocols
	if !interim && !w.hijacked && w.status == 0 {
		if w.hooks.Status != nil {
			status = w.hooks.Status(status, w.inner.Header())
		}
		w.head(status)
	}
	w.inner.WriteHeader(status)
}

// head settles the status and runs the hooks on the final head, once.
func (w *writer) head(status int) {
	if w.status != 0 {
		return
	}
	w.status = status
	if w.hooks.Head != nil {
		w.hooks.Head(status, w.inner.Header())
	}
	if w.hooks.Body != nil && contentAllowed(status) {
		w.body = w.hooks.Body(status, w.inner.Header(), (*sink)(w))
	}
}

// contentAllowed says whether an answer with the status may have content (RFC
// 9110 section 6.4.1).
func contentAllowed(status int) bool {
	return status >= 200 && status != http.StatusNoContent && status != http.StatusNotModified
}

func (w *writer) Write(p []byte) (int, error) {
	w.implicitHead()
	if w.body != nil {
		return w.body.Write(p)
	}
	return w.send(p)
}

// WriteString spares io.WriteString the copy.
func (w *writer) WriteString(s string) (int, error) {
	w.implicitHead()
	if sw, ok := w.inner.(io.StringWriter); ok && w.body == nil {
		n, err := sw.WriteString(s)
		w.count(int64(n))
		return n, err
	}
	return w.Write([]byte(s))
}

// ReadFrom keeps sendfile and splice working where no transform is in the way.
func (w *writer) ReadFrom(src io.Reader) (int64, error) {
	w.implicitHead()
	if rf, ok := w.inner.(io.ReaderFrom); ok && w.body == nil {
		n, err := rf.ReadFrom(src)
		w.count(n)
		return n, err
	}
	buf := bufpool.Get()
	defer bufpool.Put(buf)
	return io.CopyBuffer(struct{ io.Writer }{w}, src, buf)
}

// implicitHead does what net/http does on the first Write without a head.
func (w *writer) implicitHead() {
	if w.status == 0 && !w.hijacked {
		w.WriteHeader(http.StatusOK)
	}
}

// send writes to the inner writer and counts.
func (w *writer) send(p []byte) (int, error) {
	n, err := w.inner.Write(p)
	w.count(int64(n))
	return n, err
}

func (w *writer) count(n int64) {
	if !w.headOnly {
		w.bytes += n
	}
}

// sink is the writer that a transform writes to.
type sink writer

func (s *sink) Write(p []byte) (int, error) { return (*writer)(s).send(p) }

// Flush serves code that asserts http.Flusher.
func (w *writer) Flush() { _ = w.FlushError() }

// FlushError serves http.ResponseController. It flushes the transform first.
func (w *writer) FlushError() error {
	w.implicitHead()
	if f, ok := w.body.(interface{ Flush() error }); ok {
		if err := f.Flush(); err != nil {
			return err
		}
	}
	return http.NewResponseController(w.inner).Flush()
}

// Hijack runs the head hook with status 101 on whatever Header holds, then
// takes the connection over. Whoever answers an upgrade fills Header first,
// hijacks, and writes the head from Header, so that filters see a 101 as they
// see every other answer.
func (w *writer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if !canHijack(w.inner) {
		return nil, nil, errNoHijack
	}
	w.head(http.StatusSwitchingProtocols)
	conn, buffered, err := http.NewResponseController(w.inner).Hijack()
	w.hijacked = w.hijacked || err == nil
	return conn, buffered, err
}

var errNoHijack = errors.Join(errors.New("response: connection can't be hijacked"), http.ErrNotSupported)

// canHijack looks for a Hijacker, so that no head hook runs for a hijack that
// can't succeed (HTTP/2).
func canHijack(w http.ResponseWriter) bool {
	for {
		switch t := w.(type) {
		case *writer:
			w = t.inner
		case http.Hijacker:
			return true
		case interface{ Unwrap() http.ResponseWriter }:
			w = t.Unwrap()
		default:
			return false
		}
	}
}

// finish ends the body after the handler returned.
func (w *writer) finish() {
	if w.hijacked {
		return
	}
	if w.hooks.Status != nil {
		w.implicitHead()
	}
	w.head(http.StatusOK) // net/http sends the head itself
	if w.body != nil {
		if err := w.body.Close(); err != nil {
			panic(http.ErrAbortHandler) // a transform's missing tail must not look like a complete body
		}
	}
}

func (w *writer) end() {
	if w.hooks.End != nil {
		w.hooks.End(Stats{Status: w.status, Bytes: w.bytes, Hijacked: w.hijacked, Aborted: w.aborted})
	}
}
