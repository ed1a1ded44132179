package filters

import (
	"errors"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/culvert-go/culvert/internal/nested"
)

// ConcurrencyOptions configures Concurrency.
type ConcurrencyOptions struct {
	// Max is how many requests and tunnels may run at a time. Required.
	Max int
	// Queue is how many more may wait; 0 means none. A request that is a part of another one does not wait: see
	// upstream.Options.Queue.
	Queue int
	// QueueTimeout bounds the wait; 0 means 10 seconds.
	QueueTimeout time.Duration
	// RetryAfter is what a client that is refused is told; 0 means one second.
	RetryAfter time.Duration
}

// Concurrency returns a filter that bounds how many requests and tunnels run at a
// time. What can neither run nor wait is answered with 503 and Retry-After.
func Concurrency(o ConcurrencyOptions) (Filter, error) {
	if o.Max <= 0 || o.Queue < 0 || o.QueueTimeout < 0 || o.RetryAfter < 0 {
		return nil, errors.New("filters: Concurrency needs a Max, and nothing negative")
	}
	if o.QueueTimeout == 0 {
		o.QueueTimeout = 10 * time.Second
	}
	if o.RetryAfter == 0 {
		o.RetryAfter = time.Second
	}
	running := make(chan struct{}, o.Max)
	present := make(chan struct{}, o.Max+min(o.Queue, math.MaxInt-o.Max)) // running or waiting
	retryAfter := strconv.FormatInt(int64((o.RetryAfter-1)/time.Second+1), 10)
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !enter(r, present, running, o.QueueTimeout) {
				w.Header().Set("Retry-After", retryAfter)
				refuse(w, r, http.StatusServiceUnavailable)
				return
			}
			defer func() { <-running; <-present }()
			next.ServeHTTP(w, r)
		})
	}, nil
}

// enter waits for a place among the running, if there is one to wait in.
func enter(r *http.Request, present, running chan struct{}, timeout time.Duration) bool {
	select {
	case present <- struct{}{}:
	default:
		return false
	}
	select {
	case running <- struct{}{}:
		return true
	default:
	}
	if nested.Is(r.Context()) { // the place that it would wait for may be that of the request that it is a part of
		<-present
		return false
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case running <- struct{}{}:
		return true
	case <-timer.C:
	case <-r.Context().Done():
	}
	<-present
	return false
}
