package filters

import (
	"net/http"
	"time"

	"github.com/culvert-go/culvert/internal/response"
)

// Metrics is told of requests. Adapters for Prometheus and OpenTelemetry are in
// examples. Its methods are called by many goroutines at a time.
type Metrics interface {
	// RequestStarted is called when a request comes.
	RequestStarted(r *http.Request)
	// RequestEnded is called when its answer, or its tunnel, has ended, also when
	// the handler panicked.
	RequestEnded(r *http.Request, o Observation)
}

// Observation is what is known of a request when it has ended.
type Observation struct {
	// ResponseStats are those of the answer. Its Status is that of the failure
	// where no answer was sent: 499 for a client that left.
	ResponseStats
	// Duration is the time from the request's head to the end.
	Duration time.Duration
	// Result is what a proxy has done, with each target that was asked; it is
	// empty, never nil, if none did anything.
	Result *Result
}

// Observe returns a filter that tells m of each request.
func Observe(m Metrics) Filter {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			start := time.Now()
			ctx, record := WithResult(r.Context())
			r = r.WithContext(ctx)
			m.RequestStarted(r)
			response.Serve(next, w, r, response.Hooks{End: func(s response.Stats) {
				s.Status = loggedStatus(s, record)
				m.RequestEnded(r, Observation{s, time.Since(start), record})
			}})
		})
	}
}
