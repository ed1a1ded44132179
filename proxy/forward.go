package proxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/clientside"
	"github.com/culvert-go/culvert/internal/fieldnames"
	"github.com/culvert-go/culvert/internal/record"
	"github.com/culvert-go/culvert/internal/replay"
	"github.com/culvert-go/culvert/upstream"
)

var (
	errConnect      = errors.New("CONNECT without a protocol")
	errNoPath       = errors.New("a request target without a path")
	errDraining     = errors.New("draining")
	errTotalTimeout = fmt.Errorf("the whole exchange took too long: %w", context.DeadlineExceeded)
)

// forwarding is one request on its way, over all its attempts.
type forwarding struct {
	p          *Proxy
	client     clientside.Handle
	out        *Outbound
	exchange   exchanger
	body       replay.Body
	interims   interimTime      // of the last attempt
	record     *record.Recorder // nil: no filter records the exchange
	start      time.Time
	started    time.Time // of this attempt
	lease      upstream.Lease
	second     upstream.Lease        // of the attempt beside this one (Retry.Hedge)
	ended      func(culvert.Attempt) // for the end of this attempt, of Options.OnAttempt
	tried      []upstream.Lease
	round      int              // how many of tried may get the request again, since it has waited
	pause      time.Duration    // the last one for which it has waited
	failed     []upstream.Lease // those of tried that may not get the request once more
	repeated   bool             // a target has got the request once more
	hookFailed bool             // ModifyResponse has ended the exchange
	replaced   bool             // ModifyResponse has replaced the last attempt's response, or its status
	leased     bool             // the context of the request is that of a lease
	stale      bool             // the last attempt's connection had been kept, and ended before a response began
	overdue    bool             // the last attempt's target has ended a gRPC call whose time is over
	first      call             // of the first attempt
	call       *call            // of the last one
	own        http1Attempt     // the first attempt's
	held       bool             // another goroutine may use it after the handler has returned
	dialled    bool             // another goroutine may use the request's context then
	again      io.ReadCloser    // behind a failure: failed.body

	scheme    string    // what Options.Rewrite has left; "": the group's of the lease
	path      string    // what it has left, as it is sent to a target without a base path
	exchanges exchanges // of the first attempt, if Options.Upstream is not one Group

	outbound Outbound
	request  http.Request
	url      url.URL
	header   http.Header
	values   []string // header's
	spelt    []string // memory for outbound's FieldNames

	names      fieldnames.Upgrade // if they are kept; Received is that of the last response
	unobserved http.Header        // of each attempt, before Options.OnAttempt; nil: that was not called yet
}

// forwardings are reused unless another goroutine may hold them: those of a transport, of an upgrade
// and of a body that was still being sent are not.
var forwardings = sync.Pool{New: func() any { return &forwarding{header: http.Header{}} }}

func (f *forwarding) free() {
	if f.held {
		return
	}
	header, values, spelt := f.header, f.values[:0], f.spelt[:0]
	clear(header)
	clear(values[:cap(values)])
	clear(spelt[:cap(spelt)])
	*f = forwarding{header: header, values: values, spelt: spelt}
	forwardings.Put(f)
}

// forward requests one target after the other until one has given the response.
func (p *Proxy) forward(w http.ResponseWriter, r *http.Request, record *record.Recorder) (end failed) {
	f := forwardings.Get().(*forwarding)
	f.p, f.exchange, f.record = p, p.exchange, record
	if end.err = f.forward(w, r); end.err != nil {
		end.left, end.body = f.unread(r), f.again
	}
	if f.held || f.dialled {
		clientside.Hold(w)
	}
	f.free() // not where a hook panics
	return end
}

func (f *forwarding) forward(w http.ResponseWriter, r *http.Request) *culvert.Error {
	p := f.p
	f.client.Start(w, r)
	defer f.client.End()
	f.start = time.Now()
	f.started = f.start
	protocol := p.upgrades.Protocol(r)
	if err := checkForwardable(r, protocol); err != nil {
		return err
	}
	shareTrailers(r)
	if protocol != "" || p.o.OnAttempt != nil {
		r, f.record = record.ForRequest(r) // of an upgrade it notes when the header of the response was received
	}
	if protocol != "" {
		f.exchange, f.held = upgradeExchange{p.upgrades, p.o.DetachTunnels}, true
	} else if p.o.Timeout > 0 {
		ctx, cancel := context.WithTimeoutCause(r.Context(), p.o.Timeout, errTotalTimeout)
		defer cancel()
		r = r.WithContext(ctx)
	}
	if protocol == "" {
		defer f.body.Finish()
	}
	returned := false
	defer f.leavePanicked(r, &returned)
	err := f.forwardWith(r, protocol)
	returned = true
	if err != nil {
		f.again = f.bodyAgain()
	}
	return err
}

// checkForwardable returns why r can't be forwarded. protocol is that of an upgrade, "" for none.
func checkForwardable(r *http.Request, protocol string) *culvert.Error {
	switch {
	case protocol == "" && r.Method == http.MethodConnect:
		return &culvert.Error{Kind: culvert.Unsupported, Err: errConnect}
	case r.URL.Opaque != "" && !strings.HasPrefix(r.URL.Opaque, "/"): // "GET foo:bar"
		return &culvert.Error{Kind: culvert.BadRequest, Err: errNoPath}
	}
	return checkLength(r)
}

// forwardWith is forward of what may be forwarded. protocol is that of an upgrade, "" for none.
func (f *forwarding) forwardWith(r *http.Request, protocol string) *culvert.Error {
	p := f.p
	if protocol == "" {
		var err *culvert.Error
		if r, err = f.body.Start(&f.client, r, p.bodyOptions()); err != nil {
			return err
		}
	}
	f.first.start(f, r)
	f.call = &f.first
	scheme := ""
	if p.group != nil {
		scheme = p.group.Scheme()
	}
	f.out = f.newOutbound(r, protocol, scheme)
	p.o.Rewrite(f.out)
	if err := f.out.settle(scheme, p.exchange); err != nil {
		return err
	}
	f.scheme, f.path = f.out.Out.URL.Scheme, f.out.Out.URL.Opaque
	p.o.Retry.Budget.earn()
	return f.run()
}

// run runs one attempt after the other, until one has given the response or no other may follow.
func (f *forwarding) run() *culvert.Error {
	ctx := f.out.In.Context()
	if err := f.pickFirst(ctx); err != nil {
		return err
	}
	for {
		result, failure := f.attempt()
		switch {
		case result.dropped: // another target is leased
		case failure == nil:
			return nil
		default:
			next := f.p.o.Retry.decide(attemptEnd{request: repeatsOf(f.out.Out), failure: failure, stale: f.stale})
			if f.hookFailed || f.overdue || next == endExchange {
				return failure
			}
			if !f.nextTarget(ctx, next) {
				return cmp.Or(left(ctx, failure.BytesSent), failure)
			}
		}
	}
}

// pick leases a target. It waits in the group's queue as long as ctx lasts.
func (f *forwarding) pick(ctx context.Context) *culvert.Error {
	lease, err := f.leaseOf(ctx, f.tried[f.round:])
	if err != nil {
		return err
	}
	f.lease = lease
	return nil
}

// nextTarget leases the target of the attempt that next decides on, if the request may have another one. It waits in the
// group's queue as long as ctx lasts.
func (f *forwarding) nextTarget(ctx context.Context, next decision) (leased bool) {
	retry := &f.p.o.Retry
	switch {
	case !retry.permits(len(f.tried)+1, time.Since(f.start)),
		f.out.In.Context().Err() != nil,
		!f.body.Replayable(), // where it was read, if not sent
		!retry.Budget.reserve():
		return false
	}
	defer func() { retry.Budget.settle(leased) }() // also where a function of the group's panics
	f.tried = append(f.tried, f.lease)
	if next != tryAnotherThenSame {
		f.failed = append(f.failed, f.lease)
	}
	return f.pick(ctx) == nil || next == tryAnotherThenSame && f.retrySame(ctx) || f.await(ctx)
}

// retrySame leases one of the targets again that have broken a kept connection off, or refused the request unprocessed.
// A request is repeated once.
func (f *forwarding) retrySame(ctx context.Context) bool {
	if f.repeated {
		return false
	}
	f.repeated = true
	lease, err := f.leaseOf(ctx, f.failed)
	if err != nil {
		return false
	}
	f.lease = lease
	return true
}

// retryStatus reports whether a response of this status is to be dropped for that of another target, if one can be
// leased at once.
func (f *forwarding) retryStatus(status int) bool {
	retry := &f.p.o.Retry
	return len(retry.Statuses) > 0 && retry.decide(attemptEnd{request: repeatsOf(f.out.Out), status: status}) != endExchange
}

// leaseInstead leases another target, for the response to be dropped that the attempt has received. body is the attempt's:
// it gets no more of the client's then.
func (f *forwarding) leaseInstead(body *replay.Attempt) (leased bool) {
	body.Pause()
	defer func() { body.Resume(!leased) }() // a key function may panic
	return f.nextTarget(noWait, tryAnother)
}

// noWait has ended: a request whose response is to be dropped has its target until then, and must not wait for another.
// Two could wait for each other's.
var noWait = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// attempt runs the exchange with the leased target. Behind a response that was dropped another target is leased.
func (f *forwarding) attempt() (result exchangeResult, err *culvert.Error) {
	lease, returned := f.lease, false
	defer func() {
		if !returned && f.lease != lease {
			f.lease.Done(unused)
		}
	}()
	result, err = f.attemptAt(lease)
	returned = true
	return result, err
}

// attemptAt runs the exchange with lease, and reports its end to the group and the record.
func (f *forwarding) attemptAt(lease upstream.Lease) (exchangeResult, *culvert.Error) {
	if err := f.reach(lease); err != nil {
		lease.Done(unused)
		return exchangeResult{}, err
	}
	f.stale, f.overdue = false, false
	f.names.Received = fieldnames.Format{}
	returned := false
	f.ended = nil
	defer func() {
		if !returned {
			lease.Done(unused)
			f.second.Done(unused)
			f.record.AbandonAttempt(f.call.body.Sent(), &culvert.Error{Kind: culvert.Internal, BytesSent: true, Err: errPanicked})
		}
		f.observed(f.ended)
	}()
	f.ended = f.observe(lease)
	f.started = time.Now() // behind the queue, and what was read of the client's body before
	f.record.StartAttempt(lease.Addr(), f.started)
	result, err := f.exchange.exchange(f)
	returned = true
	if f.second != (upstream.Lease{}) { // which has responded
		lease, f.second = f.second, upstream.Lease{}
	}
	if err != nil && err.TargetSide() && !f.hookFailed {
		err.Target = lease.Addr()
		f.overdue = f.leaveOverdue(err)
	}
	// Whether a dropped status is a failure of the target is the group's matter, too.
	outcome, failure := upstream.Outcome{Status: result.status, TimeToHeader: result.waited}, error(nil)
	switch {
	case f.hookFailed:
		failure = err
	case err != nil:
		outcome.Err, failure = f.blame(err), err
	case result.dropped:
		failure = errStatusDropped
	}
	if !result.detached {
		lease.Done(outcome)
	}
	if f.record != nil {
		f.record.FinishAttempt(culvert.Attempt{Target: lease.Addr(), Status: result.status, TimeToHeader: result.after,
			Total: time.Since(f.started), Sent: result.sent, Received: result.received,
			WireSent: result.wireSent, WireReceived: result.wireReceived, Err: failure})
	}
	return result, err
}

// arrived returns the result of an exchange at the time when the header of its response has been received.
func (f *forwarding) arrived(status int) exchangeResult {
	after := time.Since(f.started)
	return exchangeResult{status: status, after: after, waited: f.targetTime(after)}
}

// targetTime returns how much of the time of this attempt, to the header of its response or to its failure, the target is to blame
// for. An upgrade knows what of it was the client's; its body is not the proxy's to read.
func (f *forwarding) targetTime(took time.Duration) time.Duration {
	return f.record.TargetTime(f.call.targetTime(f.started, took))
}

// blame returns the failure as it counts for the target's health. A target that had less than half of the time that ran
// out is not to blame: the client, the queue or another target have used it. Nor is one that ends a gRPC call when the time
// is over that the client has given it.
func (f *forwarding) blame(err *culvert.Error) *culvert.Error {
	if f.overdue {
		return &culvert.Error{Kind: culvert.ClientGone, Err: err}
	}
	return f.blameFor(err, f.targetTime(time.Since(f.started)))
}

// blameFor is blame of an attempt that has waited for its target for a time.
func (f *forwarding) blameFor(err *culvert.Error, waited time.Duration) *culvert.Error {
	whole := errors.Is(context.Cause(f.out.In.Context()), context.DeadlineExceeded) || errors.Is(err, errTotalTimeout)
	if err.Kind == culvert.Timeout && whole && 2*waited < time.Since(f.start) {
		return &culvert.Error{Kind: culvert.ClientGone, Err: err}
	}
	return err
}

// errPanicked is recorded of an attempt in which a hook has panicked.
var errPanicked = errors.New("a hook panicked")

// errStatusDropped is recorded of an attempt whose response was dropped.
var errStatusDropped = errors.New("response dropped for that of another target")
