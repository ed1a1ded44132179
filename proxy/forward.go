package proxy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/errs"
	"github.com/culvert-go/culvert/internal/record"
	"github.com/culvert-go/culvert/upstream"
)

var (
	errConnect      = errors.New("CONNECT without a protocol")
	errNoPath       = errors.New("a request target without a path")
	errDraining     = errors.New("draining")
	errTotalTimeout = fmt.Errorf("the whole exchange took too long: %w", context.DeadlineExceeded)
)

// forwarding is one request on its way, over all its tries.
type forwarding struct {
	p        *Proxy
	w        http.ResponseWriter
	out      *Outbound
	exchange exchanger
	body     bodySource
	record   *record.Recorder // nil: nobody asked for one
	start    time.Time
	started  time.Time // of this try
	lease    upstream.Lease
	tried    []upstream.Lease
	failed   []upstream.Lease // those of tried that may not get the request once more
	repeated bool             // a target has got the request once more
	stale    bool             // the last attempt's connection had been kept, and ended before a response began
	first    call             // of the first try
	call     *call            // of the last one
	own      ownExchange
	held     bool // somebody may use it when the handler has returned

	outbound Outbound
	request  http.Request
	url      url.URL
	header   http.Header
	values   []string // header's
}

// forwardings are used again where nobody can hold one: those of a transport, of an upgrade and
// of a body that was still being sent are not.
var forwardings = sync.Pool{New: func() any { return &forwarding{header: http.Header{}} }}

func (f *forwarding) free() {
	if f.held {
		return
	}
	header, values, lines := f.header, f.values[:0], f.own.answer.Lines()
	clear(header)
	clear(values[:cap(values)])
	*f = forwarding{header: header, values: values}
	f.own.answer.SetLines(lines)
	forwardings.Put(f)
}

// forward requests one target after the other until one has given the response. left counts behind a failure.
func (p *Proxy) forward(w http.ResponseWriter, r *http.Request, record *record.Recorder) (left unread, err *culvert.Error) {
	f := forwardings.Get().(*forwarding)
	f.p, f.w, f.exchange, f.record = p, w, p.exchange, record
	err = f.forward(r)
	if err != nil {
		left = f.unread(r)
	}
	f.free() // not where a hook panics
	return left, err
}

func (f *forwarding) forward(r *http.Request) *culvert.Error {
	p := f.p
	f.start = time.Now()
	f.started = f.start
	protocol := p.upgrades.Protocol(r)
	if protocol == "" && r.Method == http.MethodConnect {
		return &culvert.Error{Kind: culvert.Unsupported, Err: errConnect}
	}
	if r.URL.Opaque != "" && !strings.HasPrefix(r.URL.Opaque, "/") { // "GET foo:bar"
		return &culvert.Error{Kind: culvert.BadRequest, Err: errNoPath}
	}
	if err := checkLength(r); err != nil {
		return err
	}
	shareTrailers(r)
	if protocol != "" {
		r, f.record = record.ForRequest(r) // it says when the header of the response was there
		f.exchange, f.held = upgradeExchange{p.upgrades, p.o.DetachTunnels}, true
	} else if p.o.Timeout > 0 {
		ctx, cancel := context.WithTimeoutCause(r.Context(), p.o.Timeout, errTotalTimeout)
		defer cancel()
		r = r.WithContext(ctx)
	}
	if protocol == "" {
		defer f.body.close()
	}
	returned := false
	defer f.leavePanicked(r, &returned)
	err := f.forwardWith(r, protocol)
	returned = true
	return err
}

// forwardWith is forward of what may be forwarded. protocol is that of an upgrade, "" for none.
func (f *forwarding) forwardWith(r *http.Request, protocol string) *culvert.Error {
	p := f.p
	if protocol == "" {
		var err *culvert.Error
		if r, err = f.body.start(f.w, r, &p.o); err != nil {
			return err
		}
	}
	f.first.begin(f, r)
	f.call = &f.first
	f.out = f.newOutbound(r, protocol, p.upstream.Scheme())
	p.o.Rewrite(f.out)
	if err := f.out.settle(p.upstream.Scheme(), p.exchange); err != nil {
		return err
	}
	p.o.Retry.Budget.earn()
	return f.run()
}

func (f *forwarding) run() *culvert.Error {
	if err := f.pick(f.out.In.Context()); err != nil {
		return err
	}
	for {
		answer, err := f.try()
		switch {
		case err == nil && !answer.dropped:
			return nil
		case err == nil: // next has a lease
		case !f.p.o.Retry.again(f.out.Out, err) || !f.next(err):
			return err
		}
	}
}

// pick leases a target. It waits in the group's queue as long as ctx lasts.
func (f *forwarding) pick(ctx context.Context) *culvert.Error {
	lease, err := f.p.upstream.Pick(ctx, f.out.In, f.tried...)
	if err != nil {
		return errs.As(err)
	}
	f.lease = lease
	return nil
}

// next leases another target, if one more may be asked. failure is that of the one
// before; nil means that its response is to be dropped.
func (f *forwarding) next(failure *culvert.Error) (leased bool) {
	retry := &f.p.o.Retry
	tries := len(f.tried) + 1
	switch {
	case retry.Tries > 0 && tries >= retry.Tries,
		retry.Timeout > 0 && time.Since(f.start) >= retry.Timeout,
		f.out.In.Context().Err() != nil,
		!f.body.replayable(), // where it was read, if not sent
		!retry.Budget.reserve():
		return false
	}
	defer func() { retry.Budget.settle(leased) }() // also where a function of the group's panics
	f.tried = append(f.tried, f.lease)
	if !f.brokeOff(failure) {
		f.failed = append(f.failed, f.lease)
	}
	ctx := f.out.In.Context()
	if failure == nil {
		ctx = noWait
	}
	return f.pick(ctx) == nil || f.repeat(failure)
}

// brokeOff reports whether the last attempt, which failed with failure, has ended with a kept connection that its target
// has broken off, or that has refused the request unprocessed.
func (f *forwarding) brokeOff(failure *culvert.Error) bool {
	return failure != nil && failure.Kind == culvert.HeaderInvalid && (f.stale || !failure.BytesSent)
}

// noWait has ended: a request whose response is to be dropped has its target until then, and must not wait for another.
// Two could wait for each other's.
var noWait = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// repeat leases a target again that has broken a kept connection off, or refused the request unprocessed, in the last
// attempt or one before it, where no other target is left: what it closed may have been no more than a connection that
// was kept too long (golang/go#22158), and what it refused one stream too many. A request is repeated once.
func (f *forwarding) repeat(failure *culvert.Error) bool {
	if f.repeated || !f.brokeOff(failure) {
		return false
	}
	f.repeated = true
	lease, err := f.p.upstream.Pick(f.out.In.Context(), f.out.In, f.failed...)
	if err != nil {
		return false
	}
	f.lease = lease
	return true
}

// drop is asked by an exchange whether the answer's status is to be dropped for
// that of another target. body is the try's: it gets no more of the client's then.
func (f *forwarding) drop(status int, body *requestBody) bool {
	retry := &f.p.o.Retry
	if !retry.dropped(status) || !retry.repeatable(f.out.Out) {
		return false
	}
	another := false
	body.pause()
	defer func() { body.resume(another) }() // a key function may panic
	another = f.next(nil)
	return another
}

// try runs the exchange against the leased target and tells how it did.
func (f *forwarding) try() (answered, *culvert.Error) {
	lease := f.lease
	f.out.Out.URL.Host = lease.Host()
	if lease.ConnAddr().Unix {
		f.out.Out = f.out.Out.WithContext(lease.Context(f.out.Out.Context()))
	}
	f.started = time.Now() // behind the queue, and what was read of the client's body before
	f.stale = false
	f.record.StartAttempt(lease.Addr(), f.started)
	returned := false
	defer func() {
		if !returned { // a hook panicked, which says nothing about the target
			nothing := upstream.Outcome{Err: &culvert.Error{Kind: culvert.ClientGone}}
			lease.Done(nothing)
			if f.lease != lease { // of the attempt behind a dropped response
				f.lease.Done(nothing)
			}
			f.record.AbandonAttempt(f.call.body.sent(), &culvert.Error{Kind: culvert.Internal, BytesSent: true, Err: errPanicked})
		}
	}()
	answer, err := f.exchange.exchange(f)
	returned = true
	if err != nil && err.TargetSide() {
		err.Target = lease.Addr()
	}
	// Whether a dropped status is a failure of the target is the group's matter, too.
	outcome, failure := upstream.Outcome{Status: answer.status, TimeToHeader: answer.waited}, error(nil)
	switch {
	case err != nil:
		outcome.Err, failure = f.blame(err), err
	case answer.dropped:
		failure = errStatusDropped
	}
	if !answer.detached {
		lease.Done(outcome)
	}
	if f.record != nil {
		f.record.FinishAttempt(culvert.Attempt{Target: lease.Addr(), Status: answer.status, TimeToHeader: answer.after,
			Total: time.Since(f.started), Sent: answer.sent, Received: answer.received, Err: failure})
	}
	return answer, err
}

// arrived is what is known when the header of a response has been received.
func (f *forwarding) arrived(status int) answered {
	after := time.Since(f.started)
	return answered{status: status, after: after, waited: f.targetTime(after)}
}

// targetTime returns how much of the time of this try, to the header of its response or to its failure, the target is to blame
// for. An upgrade knows what of it was the client's; its body is not the proxy's to read.
func (f *forwarding) targetTime(took time.Duration) time.Duration {
	return f.record.TargetTime(f.call.body.waited(f.started, took))
}

// blame returns the failure as it counts for the target's health. A target that had less than half of the time that ran
// out is not to blame: the client, the queue or another target have used it.
func (f *forwarding) blame(err *culvert.Error) *culvert.Error {
	attempt := time.Since(f.started)
	whole := errors.Is(context.Cause(f.out.In.Context()), context.DeadlineExceeded) || errors.Is(err, errTotalTimeout)
	if err.Kind == culvert.Timeout && whole && 2*f.targetTime(attempt) < time.Since(f.start) {
		return &culvert.Error{Kind: culvert.ClientGone, Err: err}
	}
	return err
}

// errPanicked is recorded of an attempt in which a hook has panicked.
var errPanicked = errors.New("a hook panicked")

// errStatusDropped is recorded of an attempt whose response was dropped.
var errStatusDropped = errors.New("answer dropped for that of another target")
