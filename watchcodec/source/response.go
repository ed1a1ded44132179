package source

import (
	"bytes"
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

// refusal keeps the body of a RefusedError.
type refusal struct{ *RefusedError }

func (r refusal) Write(p []byte) (int, error) {
	r.Body = append(r.Body, p[:min(len(p), maxBody-len(r.Body))]...)
	return len(p), nil
}

// Discards implements response.Discards.
func (r refusal) Discards() bool { return len(r.Body) >= maxBody }

func (r refusal) Close() error { return r.RefusedError }

// receive requests a list or a watch. found is called if the server responds with a success, whose
// body is then written to the result of open. cancel ends the request, if its response can't be read.
func (s *Source) receive(r *http.Request, found func(), open func(watchcodec.Format) io.WriteCloser, cancel func()) error {
	refused := false
	w := response.NewReceiver(func(status int, h http.Header) (io.WriteCloser, error) {
		if status != http.StatusOK {
			refused = true
			return refusal{&RefusedError{Status: status, Header: h.Clone()}}, nil
		}
		format, ok := watchcodec.FormatOf(h.Get("Content-Type"))
		if encoding := h.Get("Content-Encoding"); !ok || encoding != "" && encoding != "identity" {
			return nil, fmt.Errorf("source: a response that can't be read: Content-Type %q, Content-Encoding %q", h.Get("Content-Type"), encoding)
		}
		found()
		return open(format), nil
	}, cancel)
	if err := s.serve(w, r); err != nil && w.Err() == nil && !refused {
		return err
	}
	return w.Close()
}
