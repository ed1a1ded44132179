package proxy

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/errs"
)

// Retry configures when a request is sent to another target.
//
// Nothing is retried once the client was sent a header. Each target is sent a request at most once, unless Wait is set.
// Where no other target is left, one may be sent it a second time: if it ended a kept connection before a response began, which may only have
// been kept too long, or if it refused the request unprocessed over HTTP/2 (RFC 9113 section 8.7).
//
// A request that its target has surely not processed may always be retried: the target could not be dialled, or has
// refused it. For a request without a body over HTTP/2 a graceful GOAWAY does not show that, since net/http hides whether
// it was that, or a reset with PROTOCOL_ERROR. Any other request is retried only if its body can be sent again and it may
// reach two targets: it is idempotent (RFC 9110 section 9.2.2), has an Idempotency-Key that is not empty, or NonIdempotent is set. Method
// and key count as Options.Rewrite has left them. The zero Retry retries on another target what was not sent, nothing else.
//
// Regardless of Retry, a kept connection that ends as a request is sent over it, before a response has begun, says nothing
// about its target (RFC 9112 section 9.3.1). A request that has no body is then sent once more, over a fresh connection to
// the same target, even if that may have received it: if it is a GET, HEAD, OPTIONS or TRACE, or has an Idempotency-Key. So
// is any request of which nothing was written. That is a part of the attempt: no other target is sent the request, and no
// failure is counted. net/http's transport, which runs the exchanges over HTTP/2 and where Options.Transport is one, tries
// its other kept connections to the target before a fresh one.
type Retry struct {
	// Tries is the maximum number of attempts of a request. 0 means one for each target, and one
	// more if no other is left.
	Tries int
	// Timeout is the time after which no further attempt begins; 0 means none.
	Timeout time.Duration
	// Wait is how long after its beginning a request may still wait for a target, instead of failing, where none is
	// available, or where one that may have another attempt has tried them all; 0 means that it does not wait. It then looks
	// for a target again, among those that it has tried as well, after pauses that double from 50 ms to a second, each
	// shortened by a random part, up to a half. So a restart of the only target, whose address refuses connections for a
	// while, fails no request that has not been sent. Tries, Timeout and Budget bound these attempts like others, and the
	// request's context ends the wait, as Proxy.Drain does. Requests that wait for a response with one of Statuses do not: they have it.
	//
	// A request that waits holds its connection and what it has of its body: filters.Concurrency, or the server's MaxConns,
	// bounds how many do.
	Wait time.Duration
	// Hedge is the time without a response's header after which a request is sent to a second target as well, if one can be
	// sent it at once, without waiting in the group's queue; 0 means that it is not. The response that begins first is relayed,
	// and the other attempt is ended, with no outcome for its target's health. If one of the two fails, the other is
	// waited for. Only requests without a body that are safe or have a key (the ones that are sent once more over a fresh connection,
	// above) are hedged. The second attempt is one of Tries, and one that Budget must permit: without a Budget, a group that has
	// become slow as a whole gets twice the requests. The end of an attempt that is overtaken is recorded as an Attempt whose Err says so. Interim responses of the second target are
	// not relayed. A request that is to find whether a target is back, which failures have taken out, is not hedged. Nor is one
	// that the group's balance binds to a target, with which its client may have a session: by upstream.IPHash, by the cookie of
	// upstream.Sticky, or by a key of upstream.Hash and HashModulo.
	//
	// With Hedge such requests run by net/http's transport, on goroutines of their own, also where the proxy would use
	// connections of its own.
	Hedge time.Duration
	// Errors retries requests whose target broke off before the header of its
	// response, or sent one that is not valid.
	Errors bool
	// Timeouts retries requests whose target took longer than the
	// group's HeaderTimeout or WriteTimeout.
	Timeouts bool
	// Statuses are those of responses that are dropped, 502 and 503 for instance, if another target can be sent the
	// request at once, without waiting in the group's queue. If none can, the response is relayed. Whether one is a
	// failure of its target is the matter of the group's FailStatuses. They are from 200 to 999; nil means none.
	Statuses []int
	// NonIdempotent retries other methods too. Then the same order may be placed twice.
	NonIdempotent bool
	// KeepBody is how many bytes of a request's body are kept in memory for a retry; 0 means
	// 64 KiB, a negative number none. A larger body can't be sent again, unless
	// Options.RequestBuffer holds it.
	KeepBody int
	// Budget bounds the retries of all requests together, so that retries do not make an
	// overload worse. nil means no bound. Several proxies may share one.
	Budget *RetryBudget
}

func (r Retry) withDefaults() (Retry, error) {
	if r.Tries < 0 {
		return r, errors.New("proxy: Retry.Tries is negative")
	}
	if r.Hedge < 0 {
		return r, errors.New("proxy: Retry.Hedge is negative")
	}
	if r.Wait < 0 {
		return r, errors.New("proxy: Retry.Wait is negative")
	}
	for _, status := range r.Statuses {
		if status < 200 || status > 999 {
			return r, fmt.Errorf("proxy: Retry.Statuses: %d is not from 200 to 999", status)
		}
	}
	r.Timeout = max(0, r.Timeout)
	switch {
	case !r.Errors && !r.Timeouts && len(r.Statuses) == 0:
		r.KeepBody = 0 // it is never sent again
	case r.KeepBody == 0:
		r.KeepBody = 64 << 10
	case r.KeepBody < 0:
		r.KeepBody = 0
	}
	return r, nil
}

// repeats is how freely a request may be sent to targets twice.
type repeats int

const (
	repeatsNever      repeats = iota // it may take effect each time
	repeatsIdempotent                // it takes effect once (RFC 9110 section 9.2.2), but late it may undo what another client has done since
	repeatsSafe                      // it has no effect (section 9.2.1), or its target recognises it by a key
)

// repeatsOf returns how freely out, the request as it is sent, may be sent twice.
//
// Retry, which the program configures, repeats idempotent requests. A request that is repeated in any case, after a kept
// connection has ended, must be safe: that is the rule of net/http's transport (http.Request.isReplayable), so that both
// exchanges follow it.
func repeatsOf(out *http.Request) repeats {
	for _, name := range keyFields {
		if hasContent(out.Header[name]) {
			return repeatsSafe
		}
	}
	switch out.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return repeatsSafe
	case http.MethodPut, http.MethodDelete:
		return repeatsIdempotent
	}
	return repeatsNever
}

// keyFields are the header fields by which a target recognises a request that it gets twice.
var keyFields = [...]string{"Idempotency-Key", "X-Idempotency-Key"}

// hasContent reports whether one of a field's lines is not empty.
func hasContent(lines []string) bool {
	return slices.ContainsFunc(lines, func(s string) bool { return s != "" })
}

// hideEmptyKeys spells the names of empty keys so that net/http's transport does not take them for keys, and repeat the request.
func hideEmptyKeys(h http.Header) {
	for _, name := range keyFields {
		if lines := h[name]; lines != nil && !hasContent(lines) {
			delete(h, name)
			h[strings.ToLower(name)] = lines
		}
	}
}

// mayRepeat reports whether a request may reach two targets.
func (r *Retry) mayRepeat(request repeats) bool {
	return r.NonIdempotent || request >= repeatsIdempotent
}

// attemptEnd is how an attempt has ended, as far as a retry depends on it.
type attemptEnd struct {
	request repeats
	status  int            // of a response; 0 behind a failure
	failure *culvert.Error // nil behind a response
	stale   bool           // behind a failure: a kept connection has ended before a response began
}

// decision is what follows an attempt.
type decision int

const (
	endExchange        decision = iota // its response is relayed, or its failure is the exchange's
	tryAnother                         // an attempt against another target
	tryAnotherThenSame                 // that, or one against the same target where no other is left
)

// decide returns what may follow an attempt. How often, and how long, is the matter of permits, Budget and the body.
func (r *Retry) decide(end attemptEnd) decision {
	switch {
	case end.failure == nil && r.retriesStatus(end):
		return tryAnother
	case end.failure == nil || !r.retriesFailure(end):
		return endExchange
	case end.brokeOff():
		return tryAnotherThenSame
	}
	return tryAnother
}

func (r *Retry) retriesStatus(end attemptEnd) bool {
	return slices.Contains(r.Statuses, end.status) && r.mayRepeat(end.request)
}

func (r *Retry) retriesFailure(end attemptEnd) bool {
	switch err := end.failure; {
	case err.Kind == culvert.Internal && !err.BytesSent && errs.NoPort(err.Err):
		return true // another target's address may have ports left
	case err.HeaderSent || !err.TargetSide():
		return false
	case !err.BytesSent:
		return err.Kind == culvert.DialFailed || err.Kind == culvert.Timeout || err.Kind == culvert.HeaderInvalid
	case err.Kind == culvert.Timeout:
		return r.Timeouts && r.mayRepeat(end.request)
	}
	return r.Errors && r.mayRepeat(end.request)
}

// brokeOff reports whether the target of a failed attempt has ended a kept connection, which may have been kept too long
// (golang/go#22158), or has refused the request unprocessed, which may have been one stream too many.
func (end attemptEnd) brokeOff() bool {
	return end.failure.Kind == culvert.HeaderInvalid && (end.stale || !end.failure.BytesSent)
}

// permits reports whether a request may have another attempt, after so many of them and so much time.
func (r *Retry) permits(attempts int, elapsed time.Duration) bool {
	return (r.Tries == 0 || attempts < r.Tries) && (r.Timeout == 0 || elapsed < r.Timeout)
}
