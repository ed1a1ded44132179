package filters

import (
	"net/http"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/clientbody"
	"github.com/culvert-go/culvert/internal/errs"
	"github.com/culvert-go/culvert/internal/record"
	"github.com/culvert-go/culvert/internal/response"
)

// Metrics receives the beginning and the end of each request. Adapters for Prometheus and
// OpenTelemetry are in examples. The methods must be safe for concurrent use.
type Metrics interface {
	// RequestStarted is called when a request is received.
	RequestStarted(r *http.Request)
	// RequestEnded is called when the response, or the tunnel, has ended, also if
	// the handler panicked.
	RequestEnded(r *http.Request, o Observation)
}

// Observation describes a request that has ended.
type Observation struct {
	// ResponseStats describes the response. If none was sent, Status is that of the
	// failure. It is 499 if the client has disconnected, also if a response has begun.
	culvert.ResponseStats
	// Result is the record of the proxied exchange, with each attempt. It is never nil,
	// and empty if no proxy was called.
	Result *culvert.Result
}

// Observe returns a filter that calls m's methods for each request. It panics if m
// is nil.
func Observe(m Metrics) culvert.Filter {
	if m == nil {
		panic("filters: Observe: Metrics is nil")
	}
	return observe(m.RequestStarted, m.RequestEnded)
}

// observe is Observe for two functions. The access logs use it too.
func observe(started func(*http.Request), ended func(*http.Request, Observation)) culvert.Filter {
	hooks := &response.Hooks{End: func(r *http.Request, s culvert.ResponseStats) {
		record := ResultFrom(r.Context())
		s.Status = loggedStatus(s, record)
		ended(r, Observation{s, record})
	}}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r, _ = record.ForRequest(r)
			callStarted(w, r, started)
			response.Serve(next, w, r, hooks)
		})
	}
}

// callStarted calls started. If it panics, the connection does not wait for the rest of the request's body.
func callStarted(w http.ResponseWriter, r *http.Request, started func(*http.Request)) {
	returned := false
	defer clientbody.LeavePanicked(w, r, &returned)
	started(r)
	returned = true
}

// loggedStatus returns the status of the response. It is that of the failure if none was
// sent or the client has disconnected.
func loggedStatus(s culvert.ResponseStats, record *culvert.Result) int {
	failure := errs.As(record.Err)
	switch {
	case failure != nil && failure.Kind == culvert.ClientGone:
		return failure.Status()
	case s.Status != 0:
		return s.Status
	case failure != nil:
		return failure.Status()
	}
	return http.StatusInternalServerError // a panic before the response
}
