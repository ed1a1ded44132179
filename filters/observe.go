package filters

import (
	"net/http"

	"github.com/culvert-go/culvert/internal/clientbody"
	"github.com/culvert-go/culvert/internal/fault"
	"github.com/culvert-go/culvert/internal/response"
	"github.com/culvert-go/culvert/internal/result"
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
	// Result is what a proxy has done, with each target that was asked; it is
	// empty, never nil, if none did anything.
	Result *Result
}

// Observe returns a filter that calls m's methods for each request. It panics if m
// is nil.
func Observe(m Metrics) Filter {
	if m == nil {
		panic("filters: Observe: Metrics is nil")
	}
	return observe(m.RequestStarted, m.RequestEnded)
}

// observe is Observe, and what the access logs are made of.
func observe(started func(*http.Request), ended func(*http.Request, Observation)) Filter {
	hooks := &response.Hooks{End: func(r *http.Request, s response.Stats) {
		record := ResultFrom(r.Context())
		s.Status = loggedStatus(s, record)
		ended(r, Observation{s, record})
	}}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r, _ = result.Record(r)
			begin(w, r, started)
			response.Serve(next, w, r, hooks)
		})
	}
}

// begin calls started.
func begin(w http.ResponseWriter, r *http.Request, started func(*http.Request)) {
	returned := false
	defer clientbody.LeavePanicked(w, r, &returned)
	started(r)
	returned = true
}

// loggedStatus is the status of the answer, or of the failure where none was
// sent.
func loggedStatus(s response.Stats, record *Result) int {
	failure := fault.As(record.Err)
	switch {
	case failure != nil && failure.Kind == fault.ClientGone:
		return failure.Status()
	case s.Status != 0:
		return s.Status
	case failure != nil:
		return failure.Status()
	}
	return http.StatusInternalServerError // a panic without an answer
}
