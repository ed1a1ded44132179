package filters

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/culvert-go/culvert/internal/response"
)

// Timeout returns a filter that bounds the time to the head of an answer, not that
// of its body: a download, a stream of events and a tunnel may take as long as they
// like once they have begun. When the time is over the request's context is
// cancelled with the cause context.DeadlineExceeded, and what the handler does then
// is its answer (package proxy: 504); a handler that returns without one gets a
// 504 from here. A handler that does not look at its context is not stopped.
func Timeout(d time.Duration) (Filter, error) {
	if d <= 0 {
		return nil, errors.New("filters: Timeout needs a time")
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ctx, cancel := context.WithCancelCause(r.Context())
			defer cancel(nil)
			timer := time.AfterFunc(d, func() { cancel(context.DeadlineExceeded) })
			defer timer.Stop()
			headSent := false
			answer := func(w http.ResponseWriter, r *http.Request) {
				next.ServeHTTP(w, r)
				if !headSent && context.Cause(ctx) == context.DeadlineExceeded {
					http.Error(w, http.StatusText(http.StatusGatewayTimeout), http.StatusGatewayTimeout)
				}
			}
			response.Serve(http.HandlerFunc(answer), w, r.WithContext(ctx), &response.Hooks{Head: func(*http.Request, int, http.Header) {
				headSent = true
				timer.Stop()
			}})
		})
	}, nil
}
