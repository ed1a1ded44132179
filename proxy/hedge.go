package proxy

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptrace"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/nested"
	"github.com/culvert-go/culvert/internal/panics"
	"github.com/culvert-go/culvert/upstream"
)

// errOvertaken is recorded of an attempt that was ended since another one, which ran beside it, has responded.
var errOvertaken = errors.New("another target has responded before")

// hedges reports whether the request may be sent to a second target beside the first one (Retry.Hedge).
func (f *forwarding) hedges() bool {
	return f.p.o.Retry.Hedge > 0 && !f.body.Exists() && repeatsOf(f.out.Out) == repeatsSafe && !f.lease.OnTrial()
}

// hedged is a RoundTripper that sends a request to a second target too, if the first one has not responded within Retry.Hedge.
// When RoundTrip returns, none but the attempt whose response it returns is under way.
type hedged struct {
	f    *forwarding
	c    *call
	ctx  context.Context // of the attempt, without its trace
	next http.RoundTripper
	used bool
}

// roundTrip is one of the two.
type roundTrip struct {
	began   time.Time
	took    time.Duration
	over    bool // the exchange had ended when it did
	cancel  context.CancelCauseFunc
	resends resends // of the second one; the call has those of the first
	done    chan struct{}
	resp    *http.Response
	err     error
}

// newRoundTrip returns a round trip and the context of its request, which is a child of ctx.
func newRoundTrip(ctx context.Context) (*roundTrip, context.Context) {
	ctx, cancel := context.WithCancelCause(ctx)
	return &roundTrip{cancel: cancel, done: make(chan struct{})}, ctx
}

// start runs the round trip of out on a goroutine of its own.
func (h *hedged) start(t *roundTrip, out *http.Request) {
	t.began = time.Now()
	go func() {
		defer close(t.done)
		defer panics.Catch(&t.err)
		defer func() { t.took, t.over = time.Since(t.began), h.ctx.Err() != nil }()
		t.resp, t.err = h.next.RoundTrip(out)
		if cause := context.Cause(out.Context()); t.err != nil && errors.Is(cause, errRefused) {
			t.err = cause
		}
	}()
}

// end ends a round trip whose response is not used.
func (t *roundTrip) end() {
	t.cancel(nil)
	<-t.done
	if t.err == nil && t.resp != nil && t.resp.Body != nil {
		t.resp.Body.Close()
	}
}

// result returns the result of a round trip that has ended, or passes its panic on.
func (t *roundTrip) result() (*http.Response, error) {
	if p, panicked := t.err.(*panics.Error); panicked {
		panic(p.Value)
	}
	return t.resp, t.err
}

// RoundTrip implements http.RoundTripper.
func (h *hedged) RoundTrip(out *http.Request) (*http.Response, error) {
	if h.used {
		return h.next.RoundTrip(out)
	}
	h.used = true
	first, ctx := newRoundTrip(out.Context())
	h.start(first, out.WithContext(ctx))
	timer := time.NewTimer(h.f.p.o.Retry.Hedge)
	defer timer.Stop()
	select {
	case <-first.done: // also where the exchange has ended
		return first.result()
	case <-timer.C:
	}
	before := h.f.out.Out
	ended, again := h.prepareBeside(first)
	if again == nil {
		<-first.done
		return first.result()
	}
	second := h.startBeside(again)
	select {
	case <-first.done:
	case <-second.done:
	}
	if h.await(first, second) == first {
		second.end()
		h.f.out.Out = before
		h.firstWins(second, ended)
		return first.result()
	}
	first.end()
	h.secondWins(first, second, ended, again)
	return second.result()
}

// prepareBeside leases the second target, calls Options.OnAttempt for it, and returns its request, nil if there is none. Where
// a function of the program's panics, it ends the first round trip.
func (h *hedged) prepareBeside(first *roundTrip) (ended func(culvert.Attempt), again *http.Request) {
	returned := false
	defer func() {
		if !returned {
			first.end()
		}
	}()
	if h.f.leaseBeside() {
		ended, again = h.f.observe(h.f.second), h.f.beside()
	}
	returned = true
	return ended, again
}

// startBeside runs the round trip of the second target. again is its request.
func (h *hedged) startBeside(again *http.Request) *roundTrip {
	t, ctx := newRoundTrip(h.f.second.Context(h.ctx))
	trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) { t.resends.gotConn(info) }, GotFirstResponseByte: t.resends.gotByte}
	t.resends.watch(trace, true, t.cancel)
	sent := again.WithContext(httptrace.WithClientTrace(ctx, trace))
	_ = forTransport(h.f.out.In, sent) // it has permitted the first
	h.start(t, sent)
	return t
}

// await waits until one of two round trips has a response, or both have ended, and returns the one whose result counts: of two
// failures the later one. One of them has ended.
func (h *hedged) await(first, second *roundTrip) *roundTrip {
	select {
	case <-first.done:
		if first.err == nil {
			return first
		}
		<-second.done
		return second
	case <-second.done:
		if second.err == nil {
			return second
		}
		<-first.done
	}
	return first
}

// leaseBeside leases the second target, if one can be leased at once and the request may have another attempt.
func (f *forwarding) leaseBeside() (leased bool) {
	retry := &f.p.o.Retry
	if !retry.permits(len(f.tried)+1, time.Since(f.start)) || f.out.In.Context().Err() != nil || !retry.Budget.reserve() {
		return false
	}
	defer func() { retry.Budget.settle(leased) }()
	lease, err := f.leaseOf(besideAnother, append(f.tried[f.round:len(f.tried):len(f.tried)], f.lease))
	switch {
	case err != nil:
		return false
	case lease.Group() != f.lease.Group():
		lease.Done(unused)
		return false
	}
	f.second = lease
	return true
}

// besideAnother is noWait for a second target.
var besideAnother = nested.Beside(noWait)

// beside returns the request for the second target. The transport's is made of it.
func (f *forwarding) beside() *http.Request {
	again, url := f.out.Out.WithContext(f.out.Out.Context()), *f.out.Out.URL
	f.direct(&url, f.second)
	again.URL = &url
	return again
}

// firstWins records that the second target's response is not used.
func (h *hedged) firstWins(second *roundTrip, ended func(culvert.Attempt)) {
	f := h.f
	f.record.StartAttempt(f.second.Addr(), second.began)
	f.record.Connected(second.resends.connectedAt())
	h.finish(f.second, second)
	f.observed(ended)
	f.tried = append(f.tried, f.second)
	f.second = upstream.Lease{}
}

// secondWins has the attempt continue with the second target, by the request again.
func (h *hedged) secondWins(first, second *roundTrip, ended func(culvert.Attempt), again *http.Request) {
	f := h.f
	h.c.counts = &second.resends
	f.record.Connected(h.c.resends.connectedAt())
	h.finish(f.lease, first)
	f.observed(f.ended)
	f.tried = append(f.tried, f.lease)
	f.lease, f.ended, f.started = f.second, ended, second.began
	f.out.Out = again
	if _, _, byContext := f.lease.Way(); byContext {
		f.out.Out = again.WithContext(f.lease.Context(again.Context()))
	}
	f.record.StartAttempt(f.lease.Addr(), f.started)
}

// finish gives the lease of the attempt back whose response is not used, and records its end: by itself, unless its error is
// that of its context, which was ended.
func (h *hedged) finish(lease upstream.Lease, t *roundTrip) {
	outcome, failure, err := unused, error(errOvertaken), t.err
	if p, panicked := err.(*panics.Error); panicked {
		panics.Log(nil, "upstream.Options.DialContext, TLSConfig or proxy.Options.Transport", p.Value, p.Stack)
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		ctx := h.ctx
		if !t.over {
			ctx = context.WithoutCancel(ctx) // what has ended meanwhile is not why it has failed
		}
		e := classify(ctx, err, h.c)
		if e.TargetSide() {
			e.Target = lease.Addr()
		}
		outcome, failure = upstream.Outcome{Err: h.f.blameFor(e, t.took)}, e
	}
	lease.Done(outcome)
	if h.f.record != nil {
		h.f.record.FinishAttempt(culvert.Attempt{Target: lease.Addr(), Total: t.took, Err: failure})
	}
}
