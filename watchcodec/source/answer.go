package source

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/culvert-go/culvert/internal/response"
	"github.com/culvert-go/culvert/watchcodec"
)

// RefusedError is an answer that is no list and no watch.
type RefusedError struct {
	// Status is its code, Header and Body, of which no more than 64 KiB are kept, the
	// rest.
	Status int
	Header http.Header
	Body   []byte
}

// Error tells the status and what the server says.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("source: the server answers %d: %s", e.Status, bytes.TrimSpace(e.Body))
}

// final says that asking again won't help: the caller may not, or there is no such
// resource.
func (e *RefusedError) final() bool {
	return e.Status >= 400 && e.Status < 500 && e.Status != http.StatusRequestTimeout && e.Status != http.StatusGone && e.Status != http.StatusTooManyRequests
}

// RetryAfter is how long the server asks to wait.
func (e *RefusedError) RetryAfter() time.Duration {
	seconds, _ := strconv.Atoi(e.Header.Get("Retry-After"))
	return time.Duration(max(0, seconds)) * time.Second
}

// maxBody is how much of a refusal is kept.
const maxBody = 64 << 10

// answer takes what the handler answers: a success goes to body, which is asked for with
// its format.
type answer struct {
	header  http.Header
	refused *RefusedError
	found   func() // the server answers
	open    func(watchcodec.Format) io.WriteCloser
	body    io.WriteCloser
	cancel  context.CancelFunc // ends a request whose answer can't be read
	err     error
}

func (a *answer) Header() http.Header { return a.header }

func (a *answer) WriteHeader(status int) {
	if status < 200 || a.body != nil || a.refused != nil || a.err != nil {
		return
	}
	if status != http.StatusOK {
		a.refused = &RefusedError{Status: status, Header: a.header.Clone()}
		return
	}
	format, ok := watchcodec.FormatOf(a.header.Get("Content-Type"))
	if encoding := a.header.Get("Content-Encoding"); !ok || encoding != "" && encoding != "identity" {
		defer a.cancel()
		a.err = fmt.Errorf("source: an answer that can't be read: Content-Type %q, Content-Encoding %q", a.header.Get("Content-Type"), encoding)
		return
	}
	a.found()
	a.body = a.open(format)
}

func (a *answer) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	switch {
	case a.err != nil:
		return 0, &response.TransformError{Err: a.err}
	case a.refused != nil:
		a.refused.Body = append(a.refused.Body, p[:min(len(p), maxBody-len(a.refused.Body))]...)
		return len(p), nil
	}
	n, err := a.body.Write(p)
	if err != nil {
		a.err = err
		a.cancel()
		err = &response.TransformError{Err: err} // no client has gone
	}
	return n, err
}

// Flush serves handlers that assert http.Flusher. What is written is taken at once.
func (a *answer) Flush() { a.WriteHeader(http.StatusOK) }

// FlushError serves http.ResponseController.
func (a *answer) FlushError() error {
	a.Flush()
	return nil
}

// end returns what went wrong, if anything did; served is the handler's own error.
func (a *answer) end(served error) error {
	if served != nil && a.body == nil && a.refused == nil && a.err == nil {
		return served
	}
	a.WriteHeader(http.StatusOK)
	switch {
	case a.err != nil:
		return a.err
	case a.refused != nil:
		return a.refused
	case served != nil:
		return served
	}
	return a.body.Close()
}
