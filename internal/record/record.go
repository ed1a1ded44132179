// Package record carries what a proxied exchange did back to the filters around it: which
// targets were sent the request, how long they took, and what failed.
package record

import (
	"context"
	"net/http"
	"time"

	"github.com/culvert-go/culvert"
)

// Recorder writes the Result of one exchange, on the goroutine of its handler. Its methods do
// nothing on a nil Recorder, unless said otherwise.
type Recorder struct {
	culvert.Result

	running attempt
	ended   int // the attempt of Attempts that has ended last
}

// attempt is the one that runs.
type attempt struct {
	target     string
	start      time.Time // zero: none runs
	connect    time.Duration
	client     time.Duration  // the client was waited for
	targetTime *time.Duration // see KeepTargetTime; nil: not needed
	arrived    bool           // it is one of Attempts
	index      int            // of Attempts, if it has arrived
	outer      *attempt       // a handler that replaces the response of this one has begun the one that runs; nil: none has
}

// StartAttempt starts an attempt on target. If another one runs, it continues when this one has ended: a second proxy responds
// in the place of its target.
func (r *Recorder) StartAttempt(target string, start time.Time) {
	if r == nil {
		return
	}
	var outer *attempt
	if !r.running.start.IsZero() {
		outer = new(attempt)
		*outer = r.running
	}
	r.running = attempt{target: target, start: start, outer: outer}
}

// Connected notes when the running attempt got its connection; the zero time is never.
func (r *Recorder) Connected(at time.Time) {
	if r != nil && !r.running.start.IsZero() && !at.IsZero() {
		r.running.connect = max(at.Sub(r.running.start), 1)
	}
}

// AwaitedClient notes that the running attempt has waited for its client for d, and not for
// its target. It is for attempts whose time is not known by the client's body.
func (r *Recorder) AwaitedClient(d time.Duration) {
	if r != nil {
		r.running.client += d
	}
}

// TargetTime returns how much of d, the time that the running attempt has taken so far, or to
// the header of its response, is its target's.
func (r *Recorder) TargetTime(d time.Duration) time.Duration {
	if r == nil {
		return d
	}
	return max(0, d-r.running.client)
}

// KeepTargetTime makes HeaderReceived store the TargetTime of the header of the running
// attempt's response in to. It is for what remains when the request has ended, and must not
// hold the request. r must not be nil.
func (r *Recorder) KeepTargetTime(to *time.Duration) { r.running.targetTime = to }

// HeaderReceived appends the running attempt, if there is one, with the status of its response.
// It is called before anything of that response is relayed.
func (r *Recorder) HeaderReceived(status int) {
	if r == nil || r.running.start.IsZero() || r.running.arrived {
		return
	}
	r.running.arrived, r.running.index = true, len(r.Attempts)
	header := time.Since(r.running.start)
	r.Attempts = append(r.Attempts, culvert.Attempt{Target: r.running.target, Start: r.running.start, Status: status,
		TimeToConnect: r.running.connect, TimeToHeader: header})
	if r.running.targetTime != nil {
		*r.running.targetTime = r.TargetTime(header)
	}
}

// TimeToHeader returns how long the header of the running attempt's response took, 0 if it has
// not been received. r must not be nil.
func (r *Recorder) TimeToHeader() time.Duration {
	if !r.running.arrived {
		return 0
	}
	return r.Attempts[r.running.index].TimeToHeader
}

// FinishAttempt records the end of the running attempt, whose start is that of StartAttempt. If
// HeaderReceived was called, the time to the header is the one of that call.
func (r *Recorder) FinishAttempt(a culvert.Attempt) {
	if r == nil {
		return
	}
	a.Start, a.TimeToConnect = r.running.start, r.running.connect
	if r.ended = r.running.index; r.running.arrived {
		a.TimeToHeader = r.Attempts[r.ended].TimeToHeader
		r.Attempts[r.ended] = a
	} else {
		r.ended = len(r.Attempts)
		r.Attempts = append(r.Attempts, a)
	}
	if outer := r.running.outer; outer != nil {
		r.running = *outer
	} else {
		r.running = attempt{}
	}
}

// Ended returns the record of the attempt that has ended last. r must not be nil.
func (r *Recorder) Ended() culvert.Attempt { return r.Attempts[r.ended] }

// AbandonAttempt records the end of the running attempt, if there is one, by err: a hook has
// panicked. It is the failure of the exchange, too. What of the response had been received is
// not recorded.
func (r *Recorder) AbandonAttempt(sent int64, err error) {
	if r == nil || r.running.start.IsZero() {
		return
	}
	a := culvert.Attempt{Target: r.running.target, Total: time.Since(r.running.start), Sent: sent, Err: err}
	if r.running.arrived {
		a.Status = r.Attempts[r.running.index].Status
	}
	r.FinishAttempt(a)
	r.Err = err
}

// Of returns the Result of r, nil if r is nil.
func Of(r *Recorder) *culvert.Result {
	if r == nil {
		return nil
	}
	return &r.Result
}

type key struct{}

// With returns a context whose exchange is recorded. If ctx carries a Recorder, that one is
// returned.
func With(ctx context.Context) (context.Context, *Recorder) {
	if r := From(ctx); r != nil {
		return ctx, r
	}
	return WithNew(ctx)
}

// WithNew returns a context with a Recorder of its own.
func WithNew(ctx context.Context) (context.Context, *Recorder) {
	r := new(Recorder)
	return context.WithValue(ctx, key{}, r), r
}

// ForRequest is With for a request: it returns one whose exchange is recorded.
func ForRequest(r *http.Request) (*http.Request, *Recorder) {
	if known := From(r.Context()); known != nil {
		return r, known
	}
	c := &recorded{Context: r.Context()}
	c.request = *r.WithContext(c)
	return &c.request, &c.recorder
}

// recorded is all that a request needs to carry a Recorder, in one allocation.
type recorded struct {
	context.Context
	recorder Recorder
	request  http.Request
}

// Value implements context.Context.
func (c *recorded) Value(k any) any {
	if k == (key{}) {
		return &c.recorder
	}
	return c.Context.Value(k)
}

// From returns the Recorder that ctx carries, nil if there is none.
func From(ctx context.Context) *Recorder {
	r, _ := ctx.Value(key{}).(*Recorder)
	return r
}
