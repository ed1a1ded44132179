package filters

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/culvert-go/culvert/internal/clientbody"
	"github.com/culvert-go/culvert/internal/response"
)

// Timeout returns a filter that bounds the time to the header of a response, not that
// of its body: a download, a stream of events and a tunnel may take as long as they
// like once they have begun. When the time is over the request's context is
// cancelled with the cause context.DeadlineExceeded, a read of the request's body that
// waits for the client fails with os.ErrDeadlineExceeded, and what the handler does then
// is its response (package proxy: 504, or 408 where the client was waited for); a handler
// that returns without one gets that status from here. A handler that does not look at
// its context and does not read is not stopped. Package proxy may relay a response all of
// which is received within 10 ms of the end.
func Timeout(d time.Duration) (Filter, error) {
	if d <= 0 {
		return nil, errors.New("filters: Timeout needs a time")
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			t := timing{next: next}
			t.serve(w, r, d)
		})
	}, nil
}

// timing is one request of Timeout.
type timing struct {
	next       http.Handler
	body       clientbody.Body
	ctx        context.Context
	timer      *time.Timer
	headerSent bool
}

func (t *timing) serve(w http.ResponseWriter, r *http.Request, d time.Duration) {
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	t.ctx = ctx
	r = r.WithContext(ctx)
	if r.ContentLength != 0 && r.Body != nil && r.Method != http.MethodConnect {
		t.body.Start(w, r, 0)
		defer t.body.Finish()
		r.Body = &t.body
	}
	t.timer = time.AfterFunc(d, func() {
		t.body.Interrupt(func() { cancel(context.DeadlineExceeded) })
	})
	defer t.timer.Stop()
	response.Serve(http.HandlerFunc(t.respond), w, r, &response.Hooks{Head: func(*http.Request, int, http.Header) {
		t.headerSent = true
		t.timer.Stop()
	}})
}

// respond calls the handler, and responds in its place where it has not.
func (t *timing) respond(w http.ResponseWriter, r *http.Request) {
	t.next.ServeHTTP(w, r)
	if t.headerSent || context.Cause(t.ctx) != context.DeadlineExceeded {
		return
	}
	status := http.StatusGatewayTimeout
	if t.body.Awaited() {
		status = http.StatusRequestTimeout
	}
	refuse(w, r, status)
}
