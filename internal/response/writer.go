// Package response is the one wrapper around http.ResponseWriter. Whatever
// looks at an answer, or changes it, does so through the hooks of this package,
// so that flush, hijack, trailers, interim answers, ReadFrom and deadlines keep
// working through any number of filters.
package response

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/culvert-go/culvert/internal/bufpool"
	"github.com/culvert-go/culvert/internal/deadline"
)

// Serve calls next with w wrapped by hooks, which are not changed.
func Serve(next http.Handler, w http.ResponseWriter, r *http.Request, hooks *Hooks) {
	rw := newWriter(w)
	rw.r, rw.hooks, rw.headOnly, rw.aborted = r, hooks, r.Method == http.MethodHead, true
	if hooks.End != nil {
		rw.start = time.Now()
	}
	defer rw.end()
	next.ServeHTTP(rw, r)
	rw.finish()
	rw.aborted = false
}

// writer is the ResponseWriter that Serve hands to the next handler.
type writer struct {
	inner    http.ResponseWriter
	r        *http.Request
	hooks    *Hooks
	body     io.WriteCloser // the transform, nil for none
	length   length         // of what it is given
	status   int            // of the final head, 0 before it
	bytes    int64
	start    time.Time // zero if nobody asks for it
	headOnly bool      // the request was HEAD, whatever somebody makes of it
	hijacked bool
	aborted  bool
	outward  bool               // a call of inner is under way, or has panicked
	unsent   error              // of a write of the transform's
	output   *deadline.Deadline // of what the transform writes; nil: it is not bounded here
	nested   *nested
}

// nested are the writers of filters that stand directly inside of one another, as those of a
// Chain do: one allocation for all of them. They live as long as the outermost; none is used twice,
// since whoever still holds one must not write into another answer.
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

// Unwrap serves http.ResponseController.
func (w *writer) Unwrap() http.ResponseWriter { return w.inner }

func (w *writer) Header() http.Header { return w.inner.Header() }

// WriteHeader passes interim responses on and runs the head hook before a final
// one. A second final head is passed on too, so that net/http reports it. A status that there is not
// is a bug of the handler's: it panics as it would in net/http, and before any hook runs.
func (w *writer) WriteHeader(status int) {
	if status < 100 || status > 999 {
		panic(fmt.Sprintf("invalid WriteHeader code %v", status))
	}
	interim := status >= 100 && status <= 199 && status != http.StatusSwitchingProtocols
	if !interim && !w.hijacked && w.status == 0 {
		w.announce()
		if w.hooks.Status != nil {
			status = w.hooks.Status(w.r, status, w.inner.Header())
		}
		w.head(status)
	}
	w.outward = true
	w.inner.WriteHeader(status)
	w.outward = false
}

// head settles the status and runs the hooks on the final head, once.
func (w *writer) head(status int) {
	if w.status != 0 {
		return
	}
	w.status = status
	if w.hooks.Head != nil {
		w.hooks.Head(w.r, status, w.inner.Header())
	}
	if w.hooks.Body != nil && contentAllowed(status) {
		w.body = w.hooks.Body(w.r, status, w.inner.Header(), (*sink)(w))
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
		n, err := w.body.Write(p)
		w.length.written += int64(len(p)) // whatever the transform makes of it
		err = w.transformed(err)
		if w.length.failed == nil {
			w.length.failed = err
		}
		return n, err
	}
	return w.send(p)
}

// WriteString spares io.WriteString the copy.
func (w *writer) WriteString(s string) (int, error) {
	w.implicitHead()
	if sw, ok := w.inner.(io.StringWriter); ok && w.body == nil && !w.headOnly {
		w.outward = true
		n, err := sw.WriteString(s)
		w.outward = false
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
	w.beginOutput()
	n, err := w.inner.Write(p)
	w.endOutput()
	if w.headOnly {
		// Nothing of it is sent. Over HTTP/2 net/http's writer ends the stream with the header, and calls that an
		// error where the piece is long.
		n, err = len(p), nil
	}
	w.count(int64(n))
	if err != nil {
		w.unsent = err
	}
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

// FlushError lets a transform send what it has written before it fails.
func (s *sink) FlushError() error {
	err := (*writer)(s).flush()
	if err != nil && !errors.Is(err, http.ErrNotSupported) {
		s.unsent = err
	}
	return err
}

// Flush serves code that asserts http.Flusher.
func (w *writer) Flush() { _ = w.FlushError() }

// FlushError serves http.ResponseController. It flushes the transform first.
func (w *writer) FlushError() error {
	w.implicitHead()
	if f, ok := w.body.(interface{ Flush() error }); ok {
		if err := f.Flush(); err != nil {
			return w.transformed(err)
		}
	}
	return w.flush()
}

// flush flushes the inner writer.
func (w *writer) flush() error {
	w.beginOutput()
	err := http.NewResponseController(w.inner).Flush()
	w.endOutput()
	return err
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
	w.outward = true
	conn, buffered, err := http.NewResponseController(w.inner).Hijack()
	w.outward = false
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
	if w.status == 0 {
		w.announce()
		w.head(http.StatusOK) // net/http sends the head itself
	}
	if w.body == nil {
		return
	}
	err := w.short()
	if err == nil {
		err = w.transformed(w.body.Close())
	}
	if err != nil {
		w.record(err)
		panic(http.ErrAbortHandler) // a transform's missing tail must not look like a complete body
	}
	if w.output != nil {
		w.output.Finish()
	}
}

func (w *writer) end() {
	if w.output != nil {
		w.output.Stop()
	}
	if w.aborted && w.outward && w.hooks.Around != nil {
		w.hooks.Around(w.r)
	}
	if w.hooks.End != nil {
		w.hooks.End(w.r, Stats{Status: w.status, Bytes: w.bytes, Start: w.start, Duration: time.Since(w.start), Hijacked: w.hijacked, Aborted: w.aborted})
	}
}
