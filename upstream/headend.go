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

// boundHead bounds the exchange of a HEAD by o's HeaderTimeout if next may speak HTTP/2. net/http's
// transport returns such a response when its stream has ended, so that it has the trailers, but bounds
// only the wait for the header: a target that sends a header without END_STREAM, and nothing after it,
// would hold the exchange for ever.
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

var errHeadTimeout = fmt.Errorf("awaiting the response to a HEAD: %w", os.ErrDeadlineExceeded)

// RoundTrip implements http.RoundTripper.
func (h *headBound) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodHead {
		return h.RoundTripper.RoundTrip(r)
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil) // the response has no body that this could interrupt
	timer := headTimer{timeout: h.timeout, cancel: cancel}
	defer timer.stop()
	trace := &httptrace.ClientTrace{WroteRequest: timer.start}
	resp, err := h.RoundTripper.RoundTrip(r.WithContext(httptrace.WithClientTrace(ctx, trace)))
	// When ctx is canceled, the transport may also return the response whose end it was waiting for.
	if errors.Is(context.Cause(ctx), errHeadTimeout) {
		if err == nil {
			resp.Body.Close()
		}
		return nil, errHeadTimeout
	}
	return resp, err
}

// headTimer cancels the exchange of a HEAD after the timeout.
type headTimer struct {
	timeout time.Duration
	cancel  context.CancelCauseFunc

	mu      sync.Mutex // the transport writes on a goroutine of its own
	timer   *time.Timer
	stopped bool
}

// start starts the timer when the request was written. It starts it anew if the transport sends the
// request again over another connection.
func (e *headTimer) start(httptrace.WroteRequestInfo) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.stopped:
	case e.timer == nil:
		e.timer = time.AfterFunc(e.timeout, func() { e.cancel(errHeadTimeout) })
	default:
		e.timer.Reset(e.timeout)
	}
}

// stop stops the timer, which then can't be started any more.
func (e *headTimer) stop() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stopped = true
	if e.timer != nil {
		e.timer.Stop()
	}
}
