package upstream

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"os"
	"sync"
	"time"
)

// boundHead bounds the exchange of a HEAD by o's HeaderTimeout where next may speak HTTP/2. net/http's transport returns such a
// response when its stream has ended, so that trailers are there, but bounds the wait for the header alone: a target that
// sends a header without END_STREAM, and nothing behind it, would hold the exchange for ever.
func boundHead(next http.RoundTripper, o Options) http.RoundTripper {
	if o.Protocol == HTTP1 || o.HeaderTimeout <= 0 {
		return next
	}
	return &headBound{next, o.HeaderTimeout}
}

type headBound struct {
	http.RoundTripper
	timeout time.Duration
}

var errHeadEnd = fmt.Errorf("awaiting the response to a HEAD: %w", os.ErrDeadlineExceeded)

// RoundTrip implements http.RoundTripper.
func (h *headBound) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodHead {
		return h.RoundTripper.RoundTrip(r)
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil) // the response has no body that it could end
	end := headEnd{timeout: h.timeout, cancel: cancel}
	defer end.stop()
	trace := &httptrace.ClientTrace{WroteRequest: end.wrote}
	resp, err := h.RoundTripper.RoundTrip(r.WithContext(httptrace.WithClientTrace(ctx, trace)))
	// The transport may return the response, too, whose end it has awaited until then.
	if errors.Is(context.Cause(ctx), errHeadEnd) {
		if err == nil {
			resp.Body.Close()
		}
		return nil, errHeadEnd
	}
	return resp, err
}

// headEnd is the time that is left for a response to a HEAD.
type headEnd struct {
	timeout time.Duration
	cancel  context.CancelCauseFunc

	mu      sync.Mutex // the transport writes on a goroutine of its own
	timer   *time.Timer
	stopped bool
}

// wrote begins the time, again where the transport sends the request over another connection.
func (e *headEnd) wrote(httptrace.WroteRequestInfo) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.stopped:
	case e.timer == nil:
		e.timer = time.AfterFunc(e.timeout, func() { e.cancel(errHeadEnd) })
	default:
		e.timer.Reset(e.timeout)
	}
}

// stop ends the time.
func (e *headEnd) stop() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stopped = true
	if e.timer != nil {
		e.timer.Stop()
	}
}
