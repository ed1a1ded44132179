package source

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/culvert-go/culvert/internal/response"
	"github.com/culvert-go/culvert/watchcodec"
)

// RefusedError is a response that is neither a list nor a watch.
type RefusedError struct {
	// Status, Header and Body are those of the response. No more than 64 KiB of the body are kept.
	Status int
	Header http.Header
	Body   []byte
}

// Error returns a message with the status and the body.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("source: the server responds with %d: %s", e.Status, bytes.TrimSpace(e.Body))
}

// final reports whether a retry would fail, too: the caller may not read the resource, or it does
// not exist.
func (e *RefusedError) final() bool {
	return e.Status >= 400 && e.Status < 500 && e.Status != http.StatusRequestTimeout && e.Status != http.StatusGone && e.Status != http.StatusTooManyRequests
}

// retryAfter returns the time that the server requests to wait before a retry, 0 for none. A time
// that is too long for a time.Duration is the longest whole number of seconds.
func (e *RefusedError) retryAfter() time.Duration {
	seconds, _ := strconv.ParseInt(e.Header.Get("Retry-After"), 10, 64) // the largest one if it is too large
	return time.Duration(min(max(0, seconds), math.MaxInt64/int64(time.Second))) * time.Second
}

// maxBody bounds the kept part of the body of a refusal.
const maxBody = 64 << 10

// responseWriter is the http.ResponseWriter for one list or watch. A success is written to body,
// which open returns.
type responseWriter struct {
	header  http.Header
	refused *RefusedError
	found   func() // called when the server responds with a success
	open    func(watchcodec.Format) io.WriteCloser
	body    io.WriteCloser
	cancel  context.CancelFunc // ends a request whose response can't be read
	err     error
}

func (w *responseWriter) Header() http.Header { return w.header }

func (w *responseWriter) WriteHeader(status int) {
	if status < 200 || w.body != nil || w.refused != nil || w.err != nil {
		return
	}
	if status != http.StatusOK {
		w.refused = &RefusedError{Status: status, Header: w.header.Clone()}
		return
	}
	format, ok := watchcodec.FormatOf(w.header.Get("Content-Type"))
	if encoding := w.header.Get("Content-Encoding"); !ok || encoding != "" && encoding != "identity" {
		defer w.cancel()
		w.err = fmt.Errorf("source: a response that can't be read: Content-Type %q, Content-Encoding %q", w.header.Get("Content-Type"), encoding)
		return
	}
	w.found()
	w.body = w.open(format)
}

func (w *responseWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	switch {
	case w.err != nil:
		return 0, &response.TransformError{Err: w.err}
	case w.refused != nil:
		w.refused.Body = append(w.refused.Body, p[:min(len(p), maxBody-len(w.refused.Body))]...)
		return len(p), nil
	}
	n, err := w.body.Write(p)
	if err != nil {
		w.err = err
		w.cancel()
		err = &response.TransformError{Err: err} // not the client's failure
	}
	return n, err
}

// Flush is for handlers that assert http.Flusher. Writes are not buffered.
func (w *responseWriter) Flush() { w.WriteHeader(http.StatusOK) }

// FlushError is for http.ResponseController.
func (w *responseWriter) FlushError() error {
	w.Flush()
	return nil
}

// finish ends the response and returns its error, if any. served is the error of the handler.
func (w *responseWriter) finish(served error) error {
	if served != nil && w.body == nil && w.refused == nil && w.err == nil {
		return served
	}
	w.WriteHeader(http.StatusOK)
	switch {
	case w.err != nil:
		return w.err
	case w.refused != nil:
		return w.refused
	case served != nil:
		return served
	}
	return w.body.Close()
}
