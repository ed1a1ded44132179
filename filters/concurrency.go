package filters

import (
	"errors"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/bound"
	"github.com/culvert-go/culvert/internal/nested"
)

// ConcurrencyOptions configures Concurrency. Times are as package culvert says: 0 is the default, a
// negative bound is none.
type ConcurrencyOptions struct {
	// Max is the maximum number of requests and tunnels that run at a time. Required.
	Max int
	// Queue is the maximum number of further requests that wait; 0 means none. A request that is made while another
	// one is served, as a part of it, never waits: see upstream.Options.Queue.
	Queue int
	// QueueTimeout bounds the wait; 0 means 10 seconds.
	QueueTimeout time.Duration
	// RetryAfter is sent to a refused client as Retry-After, rounded up to seconds; 0 means one second.
	RetryAfter time.Duration
}

// Concurrency returns a filter that bounds how many requests and tunnels run at a
// time. It responds with 503 and Retry-After to a request that can neither run nor wait.
// It returns an error if Max is not positive or one of Queue and RetryAfter is negative.
func Concurrency(o ConcurrencyOptions) (culvert.Filter, error) {
	if o.Max <= 0 || o.Queue < 0 || o.RetryAfter < 0 {
		return nil, errors.New("filters: Concurrency needs a Max, and neither a negative Queue nor a negative RetryAfter")
	}
	o.QueueTimeout = bound.OrDefault(o.QueueTimeout, 10*time.Second)
	if o.RetryAfter == 0 {
		o.RetryAfter = time.Second
	}
	running := make(chan struct{}, o.Max)
	present := make(chan struct{}, o.Max+min(o.Queue, math.MaxInt-o.Max)) // running or waiting
	retryAfter := strconv.FormatInt(int64((o.RetryAfter-1)/time.Second+1), 10)
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !acquire(r, present, running, o.QueueTimeout) {
				w.Header().Set("Retry-After", retryAfter)
				refuse(w, r, http.StatusServiceUnavailable)
				return
			}
			defer func() { <-running; <-present }()
			next.ServeHTTP(w, r)
		})
	}, nil
}

// acquire adds r to present and to running. If running is full it waits, provided that there is a place in present to
// wait in. It reports whether it has added r to both; otherwise it has added it to neither.
func acquire(r *http.Request, present, running chan struct{}, timeout time.Duration) bool {
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
	if nested.Is(r.Context()) { // the place that it would wait for may be held by its outer request
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
