// Package response has the wrapper around http.ResponseWriter that all filters share.
// They observe and change responses through its hooks, so that flush, hijack,
// trailers, interim responses, ReadFrom and deadlines keep working through any number
// of filters.
package response

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/bufpool"
	"github.com/culvert-go/culvert/internal/clientside"
	"github.com/culvert-go/culvert/internal/deadline"
)

// Serve calls next with a writer around w that calls the hooks. It does not change hooks. It panics with
// http.ErrAbortHandler if the body's transform has failed, also if the handler has ignored that, or if the handler has written
// less to it than its Content-Length.
func Serve(next http.Handler, w http.ResponseWriter, r *http.Request, hooks *Hooks) {
	rw := newWriter(w)
	rw.r, rw.hooks, rw.headRequest, rw.aborted = r, hooks, r.Method == http.MethodHead, true
	if hooks.End != nil {
		rw.start = time.Now()
	}
	defer rw.cleanUp()
	next.ServeHTTP(rw, r)
	rw.finish()
	rw.aborted = false
}

// writer is the ResponseWriter that Serve calls the next handler with.
type writer struct {
	inner        http.ResponseWriter
	r            *http.Request
	hooks        *Hooks
	body         io.WriteCloser // the transform, nil for none
	length       length         // of the transform's input
	status       int            // of the final header, 0 before it
	bytes        int64
	start        time.Time // zero without an End hook
	headRequest  bool      // the method was HEAD when Serve was called; a handler may change it
	hijacked     bool
	aborted      bool
	abandoned    bool               // Abandon was called, and the transform is inside of the one that discards
	callingInner bool               // a call of inner is under way, or has panicked
	writeErr     error              // of a write of the transform's output, or a flush
	output       *deadline.Deadline // of the transform's output; nil: it is not bounded here
	nested       *nested
}

// nested holds the writers of filters that are directly inside one another, as those of a Chain are, in
// one allocation. They live as long as the outermost. None is used twice: a handler that still holds a
// writer must not write into another response.
type nested struct {
	writers [4]writer
	used    int
}

// newWriter returns a writer around w.
func newWriter(w http.ResponseWriter) *writer {
	var n *nested
	if outer, ok := w.(*writer); ok && outer.nested.used < len(outer.nested.writers) {
		n = outer.nested
	} else {
		n = new(nested)
	}
	rw := &n.writers[n.used]
	n.used++
	rw.inner, rw.nested = w, n
	return rw
}

// Unwrap returns the wrapped writer, for http.ResponseController.
func (w *writer) Unwrap() http.ResponseWriter { return w.inner }

// Header implements http.ResponseWriter.
func (w *writer) Header() http.Header { return w.inner.Header() }

// WriteHeader passes interim headers on, and runs the hooks before it passes on the final one. A
// second final header is passed on too, so that net/http reports it. An invalid status is a bug
// of the handler: WriteHeader panics as net/http does, before any hook runs.
func (w *writer) WriteHeader(status int) {
	if status < 100 || status > 999 {
		panic(fmt.Sprintf("invalid WriteHeader code %v", status))
	}
	interim := status >= 100 && status <= 199 && status != http.StatusSwitchingProtocols
	if !interim && !w.hijacked && w.status == 0 {
		w.noteContentLength()
		if w.hooks.Status != nil {
			status = w.hooks.Status(w.r, status, w.inner.Header())
		}
		w.finalHeader(status)
	}
	w.callingInner = true
	w.inner.WriteHeader(status)
	w.callingInner = false
}

// finalHeader records the status and runs the hooks Header and Body. Later calls do nothing.
func (w *writer) finalHeader(status int) {
	if w.status != 0 {
		return
	}
	w.status = status
	if w.hooks.Header != nil {
		w.hooks.Header(w.r, status, w.inner.Header())
	}
	if w.hooks.Body != nil && contentAllowed(status) {
		w.body = w.hooks.Body(w.r, status, w.inner.Header(), (*sink)(w))
	}
}

// contentAllowed reports whether a response with the status may have content (RFC
// 9110 section 6.4.1).
func contentAllowed(status int) bool {
	return status >= 200 && status != http.StatusNoContent && status != http.StatusNotModified
}

// Write implements http.ResponseWriter.
func (w *writer) Write(p []byte) (int, error) {
	w.implicitHeader()
	if w.body != nil {
		n, err := w.body.Write(p)
		w.length.written += int64(len(p)) // not n: the handler has written p, also if the transform fails
		err = w.transformError(err)
		w.length.fail(err)
		return n, err
	}
	return w.send(p)
}

// WriteString implements io.StringWriter, without a copy if there is no transform.
func (w *writer) WriteString(s string) (int, error) {
	w.implicitHeader()
	if sw, ok := w.inner.(io.StringWriter); ok && w.body == nil && !w.headRequest {
		w.callingInner = true
		n, err := sw.WriteString(s)
		w.callingInner = false
		w.count(int64(n))
		return n, err
	}
	return w.Write([]byte(s))
}

// ReadFrom implements io.ReaderFrom, so that sendfile and splice are used if there is no transform.
func (w *writer) ReadFrom(src io.Reader) (int64, error) {
	w.implicitHeader()
	if rf, ok := w.inner.(io.ReaderFrom); ok && w.body == nil {
		n, err := rf.ReadFrom(src)
		w.count(n)
		return n, err
	}
	buf := bufpool.Get()
	defer bufpool.Put(buf)
	return io.CopyBuffer(struct{ io.Writer }{w}, src, buf)
}

// implicitHeader writes the status 200 before the first Write without a header, as net/http does.
func (w *writer) implicitHeader() {
	if w.status == 0 && !w.hijacked {
		w.WriteHeader(http.StatusOK)
	}
}

// send writes p to the inner writer and counts it.
func (w *writer) send(p []byte) (int, error) {
	w.beginOutput()
	n, err := w.inner.Write(p)
	w.endOutput()
	if w.headRequest {
		// Nothing of it is sent. Over HTTP/2 net/http's writer ends the stream with the header, and returns an error
		// for a long piece.
		n, err = len(p), nil
	}
	w.count(int64(n))
	if err != nil {
		w.writeErr = err
	}
	return n, err
}

func (w *writer) count(n int64) {
	if !w.headRequest {
		w.bytes += n
	}
}

// sink is the writer that a transform writes to.
type sink writer

// Write implements io.Writer.
func (s *sink) Write(p []byte) (int, error) { return (*writer)(s).send(p) }

// FlushError lets a transform send what it has written so far before it fails.
func (s *sink) FlushError() error { return (*writer)(s).flush() }

// Flush implements http.Flusher.
func (w *writer) Flush() { _ = w.FlushError() }

// FlushError flushes the transform and then the inner writer, for http.ResponseController.
func (w *writer) FlushError() error {
	w.implicitHeader()
	if f, ok := w.body.(interface{ Flush() error }); ok {
		if err := w.transformError(f.Flush()); err != nil {
			w.length.fail(err)
			return err
		}
	}
	return w.flush()
}

// flush flushes the inner writer.
func (w *writer) flush() error {
	w.beginOutput()
	err := http.NewResponseController(w.inner).Flush()
	w.endOutput()
	if err != nil && !errors.Is(err, http.ErrNotSupported) {
		w.writeErr = err
	}
	return err
}

// Hijack runs the Header hook with status 101 on Header, or 200 for CONNECT, then hijacks the
// connection. A handler that accepts an upgrade fills Header first,
// hijacks, and writes the response's header from Header, so that filters see a
// 101 as they see every other response.
func (w *writer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if !canHijack(w.inner) {
		return nil, nil, errNoHijack
	}
	w.hijackHeader()
	w.callingInner = true
	conn, buffered, err := http.NewResponseController(w.inner).Hijack()
	w.callingInner = false
	w.hijacked = w.hijacked || err == nil
	return conn, buffered, err
}

// hijackHeader records the status of a response that opens a tunnel, and runs the hook Header: there is no body.
func (w *writer) hijackHeader() {
	if w.status != 0 {
		return
	}
	w.status = http.StatusSwitchingProtocols
	if w.r.Method == http.MethodConnect { // RFC 9110 section 9.3.6
		w.status = http.StatusOK
	}
	if w.hooks.Header != nil {
		w.hooks.Header(w.r, w.status, w.inner.Header())
	}
}

var errNoHijack = errors.Join(errors.New("response: connection can't be hijacked"), http.ErrNotSupported)

// canHijack reports whether w wraps an http.Hijacker, so that no hook runs for a hijack
// that can't succeed (HTTP/2).
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

// finish runs the hooks if the handler has written nothing, and closes the transform. It is called after the
// handler has returned.
func (w *writer) finish() {
	if w.hijacked {
		return
	}
	if w.hooks.Status != nil {
		w.implicitHeader()
	}
	if w.status == 0 {
		w.noteContentLength()
		w.finalHeader(http.StatusOK) // net/http sends the header itself
	}
	if w.body == nil || w.abandoned {
		return
	}
	var err error
	if !discards(w.body) {
		err = w.lost()
	}
	if err == nil {
		err = w.transformError(w.body.Close())
	}
	if err != nil {
		w.recordFailure(err)
		clientside.Abort(w.inner, w.r)
		panic(http.ErrAbortHandler) // a body without its end must not look complete
	}
	if w.output != nil {
		w.output.Finish()
	}
	if w.hooks.Trailer != nil {
		w.hooks.Trailer(w.inner.Header())
	}
}

// cleanUp stops the output's Deadline and runs the hooks Around and End, also if the handler has panicked.
func (w *writer) cleanUp() {
	if w.output != nil {
		w.output.Stop()
	}
	if w.aborted && w.callingInner && w.hooks.Around != nil {
		w.hooks.Around(w.r)
	}
	if w.hooks.End != nil {
		w.hooks.End(w.r, culvert.ResponseStats{Status: w.status, Bytes: w.bytes, Start: w.start, Duration: time.Since(w.start), Hijacked: w.hijacked, Aborted: w.aborted})
	}
}
