// Package result carries what a proxied exchange did back to the filters
// around it: which targets were asked, how long they took, what failed.
package result

import (
	"context"
	"net/http"
	"time"
)

// Result is the record of one exchange. The proxy writes it on the handler's
// goroutine. It is complete when the handler has returned. Hooks that run on that goroutine,
// for the header of a response, see the attempts so far and the one whose response it is.
type Result struct {
	// Upstream is the name of the upstream that the exchange went to; "" if
	// the request never reached a proxy.
	Upstream string
	// Tries are the attempts in order, one for each target that was asked. An attempt is
	// recorded when the header of its response has been received, or when it has failed. Until
	// its end Total, Sent, Received and Err are 0.
	Tries []Try
	// BytesIn and BytesOut count the bytes that a tunnel carried from and to
	// the client. Zero for exchanges that were not upgraded.
	BytesIn, BytesOut int64
	// Err is the failure that the client saw, nil if there was none.
	Err error

	running attempt
}

// attempt is the one that runs.
type attempt struct {
	target  string
	start   time.Time // zero: none runs
	connect time.Duration
	client  time.Duration  // the client was waited for
	waited  *time.Duration // see KeepWaited; nil: not needed
	arrived bool           // it is the last of Tries
}

// Begin says that an attempt against target has begun. Like Arrived and Finish it does nothing
// if r is nil.
func Begin(r *Result, target string, start time.Time) {
	if r != nil {
		r.running = attempt{target: target, start: start}
	}
}

// Connected notes when the attempt that runs got its connection; the zero time is never.
func Connected(r *Result, at time.Time) {
	if r != nil && !r.running.start.IsZero() && !at.IsZero() {
		r.running.connect = max(at.Sub(r.running.start), 1)
	}
}

// AwaitedClient notes that the attempt that runs has waited for its client for d, and not for its target. Attempts that know the
// client's body otherwise have none to note.
func AwaitedClient(r *Result, d time.Duration) {
	if r != nil {
		r.running.client += d
	}
}

// TargetTime returns how much of d, the time that the running attempt has taken so far, or to the header of its response, is
// its target's.
func TargetTime(r *Result, d time.Duration) time.Duration {
	if r == nil {
		return d
	}
	return max(0, d-r.running.client)
}

// KeepWaited has Arrived set to to the TargetTime of the header of the running attempt's response. It is for what remains
// when the request has ended, and must not hold it.
func KeepWaited(r *Result, to *time.Duration) { r.running.waited = to }

// Arrived records the attempt that runs, if one does, with the header of its response. It is
// called before anything of that response is handed on.
func Arrived(r *Result, status int) {
	if r == nil || r.running.start.IsZero() || r.running.arrived {
		return
	}
	r.running.arrived = true
	header := time.Since(r.running.start)
	r.Tries = append(r.Tries, Try{Target: r.running.target, Start: r.running.start, Status: status, Connect: r.running.connect, Header: header})
	if r.running.waited != nil {
		*r.running.waited = TargetTime(r, header)
	}
}

// TimeToHeader returns how long the header of the running attempt's response took; 0 if it has not
// been received.
func TimeToHeader(r *Result) time.Duration {
	if !r.running.arrived {
		return 0
	}
	return r.Tries[len(r.Tries)-1].Header
}

// Finish records the end of the attempt that runs, whose start is that of Begin. If Arrived was called, the
// time to the header is that.
func Finish(r *Result, t Try) {
	if r == nil {
		return
	}
	t.Start, t.Connect = r.running.start, r.running.connect
	if n := len(r.Tries) - 1; r.running.arrived {
		t.Header = r.Tries[n].Header
		r.Tries[n] = t
	} else {
		r.Tries = append(r.Tries, t)
	}
	r.running = attempt{}
}

// Abandon records the end of the attempt that runs, if one does, by err: a hook has panicked. It is the failure of the
// exchange, too. What of the response had been received is not recorded.
func Abandon(r *Result, sent int64, err error) {
	if r == nil || r.running.start.IsZero() {
		return
	}
	t := Try{Target: r.running.target, Total: time.Since(r.running.start), Sent: sent, Err: err}
	if r.running.arrived {
		t.Status = r.Tries[len(r.Tries)-1].Status
	}
	Finish(r, t)
	r.Err = err
}

// Try is one attempt against one target.
type Try struct {
	// Target is the address that was asked.
	Target string
	// Start is when the attempt began, behind the wait in the group's queue. The
	// attempt ended Total later.
	Start time.Time
	// Status is the status of its answer, 0 if it gave none.
	Status int
	// Connect is the time from the start of the attempt to its connection, TLS included; next to
	// nothing for one that was kept, 0 if there was none.
	Connect time.Duration
	// Header is the time from the start of the try to the answer's head.
	Header time.Duration
	// Total is the time from the start of the try to the end of the answer.
	Total time.Duration
	// Sent counts the bytes of the request's content that were handed to the
	// target, Received those of its answer's content that the client was given.
	// For a tunnel they are 0; see Result.
	Sent, Received int64
	// Err says why the try failed, nil if it did not.
	Err error
}

type key struct{}

// With returns a context that asks the proxy below to record its exchange. If
// ctx already carries a Result, that one is returned.
func With(ctx context.Context) (context.Context, *Result) {
	if r := From(ctx); r != nil {
		return ctx, r
	}
	r := new(Result)
	return context.WithValue(ctx, key{}, r), r
}

// Record is With for a request: it returns one that carries a Result.
func Record(r *http.Request) (*http.Request, *Result) {
	if known := From(r.Context()); known != nil {
		return r, known
	}
	c := &recorded{Context: r.Context()}
	c.request = *r.WithContext(c)
	return &c.request, &c.result
}

// recorded is all that a request needs to carry a Result, in one piece.
type recorded struct {
	context.Context
	result  Result
	request http.Request
}

func (c *recorded) Value(k any) any {
	if k == (key{}) {
		return &c.result
	}
	return c.Context.Value(k)
}

// WithNew returns a context with a Result of its own.
func WithNew(ctx context.Context) (context.Context, *Result) {
	r := new(Result)
	return context.WithValue(ctx, key{}, r), r
}

// From returns the Result that ctx carries, nil if nobody asked for one.
func From(ctx context.Context) *Result {
	r, _ := ctx.Value(key{}).(*Result)
	return r
}
