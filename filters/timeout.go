package filters

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/clientbody"
	"github.com/culvert-go/culvert/internal/clientside"
	"github.com/culvert-go/culvert/internal/response"
)

// Timeout returns a filter that bounds the time to the header of a response by d. It does
// not bound the time of the body: a download, a stream of events or a tunnel may take any
// time once it has begun.
//
// When d has passed, the request's context is cancelled with the cause
// context.DeadlineExceeded, and a read of the request's body that waits for the client
// fails with os.ErrDeadlineExceeded. The handler may still respond. If it returns without a
// response, the filter responds with 408 if the handler was waiting for the client, else
// with 504, as package proxy does. A handler that neither observes its context nor reads the
// body is not stopped. Package proxy may relay a response that is received as a whole within
// 10 ms of the end. Timeout returns an error if d is not positive.
func Timeout(d time.Duration) (culvert.Filter, error) {
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

// timing is the state of one request.
type timing struct {
	next       http.Handler
	client     clientside.Handle
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
	if (r.ContentLength != 0 || clientbody.DeclaredEmpty(r)) && r.Body != nil && r.Method != http.MethodConnect {
		t.client.Start(w, r)
		defer t.client.End()
		t.body.Start(&t.client, r, 0)
		defer t.body.Finish()
		r.Body = &t.body
	}
	t.timer = time.AfterFunc(d, func() {
		t.body.Interrupt(func() { cancel(context.DeadlineExceeded) })
	})
	defer t.timer.Stop()
	response.Serve(http.HandlerFunc(t.respond), w, r, &response.Hooks{Header: func(*http.Request, int, http.Header) {
		t.headerSent = true
		t.timer.Stop()
	}})
}

// respond calls the next handler, and responds if d has passed and the handler has not responded.
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
