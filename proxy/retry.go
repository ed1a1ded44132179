package proxy

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/errs"
)

// Retry says when a request is retried on another target. Each target gets it at most
// once; where no other target is left, one that broke a kept connection off before it began
// a response may get it once more, since it may have closed one that was kept too long, and
// so may one that has refused it unprocessed over HTTP/2 (RFC 9113 section 8.7).
// Nothing is retried once a header was sent to the client.
//
// A kept connection that ends as a request is sent over it, before a response has begun, says nothing about its target (RFC 9112
// section 9.3.1): a GET, HEAD, OPTIONS or TRACE, or a request with an Idempotency-Key, that has no body is sent once more, over a fresh connection to the
// same target, even if that may have received it, and so is one of which nothing was written. That is a part of the attempt, in which
// neither another target is asked nor a failure counted, whatever Retry says. net/http's transport, which runs the
// exchanges over HTTP/2 and where Options.Transport is one, tries its other kept connections to the target before a fresh one.
//
// A request that its target has surely not processed (it could not be dialled, or has refused it) may
// always be sent to another one. Of a request without a body over HTTP/2 a graceful GOAWAY does not
// tell that: net/http hides whether it was that, or a reset with PROTOCOL_ERROR. The others may only if they are idempotent (RFC 9110
// section 9.2.2), carry an Idempotency-Key, or NonIdempotent is set, and if their
// body can be sent again. What Options.Rewrite has made of method and key counts, not what the client sent. The zero value retries on
// another target what was not sent, nothing else.
type Retry struct {
	// Tries bounds the attempts of a request; 0 means one for each target, and one more where no other is left.
	Tries int
	// Timeout is the time after which no further target is asked; 0 means none.
	Timeout time.Duration
	// Errors retries requests whose target broke off before the head of its
	// answer, or answered with something that is no head.
	Errors bool
	// Timeouts retries requests whose target took longer than the
	// group's HeaderTimeout or WriteTimeout.
	Timeouts bool
	// Statuses are those of responses that are dropped if another target can be
	// asked at once, without waiting in the group's queue, 502 and 503 for instance. If none can, the response is relayed. Whether
	// one is a failure of its target is said by the group's FailStatuses. They are from 200 to
	// 999; nil means none.
	Statuses []int
	// NonIdempotent retries other methods too. Then the same order may be placed
	// twice.
	NonIdempotent bool
	// KeepBody is how many bytes of a request's body are kept in memory to be
	// sent again; 0 means 64 KiB, a negative number none. What is larger can't
	// be sent again, unless Options.RequestBuffer holds it.
	KeepBody int
	// Budget bounds the retries of all requests together, so that a group that
	// is overloaded is not finished off by them. nil means no bound. Several
	// proxies may share one.
	Budget *RetryBudget
}

func (r Retry) withDefaults() (Retry, error) {
	if r.Tries < 0 || r.Timeout < 0 {
		return r, errors.New("proxy: Retry.Tries or Retry.Timeout is negative")
	}
	for _, status := range r.Statuses {
		if status < 200 || status > 999 {
			return r, fmt.Errorf("proxy: Retry.Statuses: %d is not from 200 to 999", status)
		}
	}
	switch {
	case !r.Errors && !r.Timeouts && len(r.Statuses) == 0:
		r.KeepBody = 0 // nobody would send it again
	case r.KeepBody == 0:
		r.KeepBody = 64 << 10
	case r.KeepBody < 0:
		r.KeepBody = 0
	}
	return r, nil
}

// again reports whether the failure allows that another target gets out, the request as it is sent.
func (r Retry) again(out *http.Request, err *culvert.Error) bool {
	switch {
	case err.Kind == culvert.Internal && !err.BytesSent && errs.NoPort(err.Err):
		return true // another target's address may have ports left
	case err.HeaderSent || !err.TargetSide():
		return false
	case !err.BytesSent:
		return err.Kind == culvert.DialFailed || err.Kind == culvert.Timeout || err.Kind == culvert.HeaderInvalid
	case err.Kind == culvert.Timeout:
		return r.Timeouts && r.repeatable(out)
	}
	return r.Errors && r.repeatable(out)
}

// repeatable reports whether out, the request as it is sent, may reach two targets.
func (r Retry) repeatable(out *http.Request) bool {
	switch out.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodPut, http.MethodDelete:
		return true
	}
	return r.NonIdempotent || out.Header["Idempotency-Key"] != nil || out.Header["X-Idempotency-Key"] != nil
}

func (r Retry) dropped(status int) bool { return slices.Contains(r.Statuses, status) }

// RetryBudget bounds retries by a share of the requests. What is not retried since no
// other target is left costs it nothing. It is safe for concurrent use.
type RetryBudget struct {
	ratio, perSecond float64
	mu               sync.Mutex // guards what follows
	tokens           float64
	reserved         float64 // of tokens: for retries whose target is being picked
	last             time.Time
}

// budgetSeconds is how long a budget saves up.
const budgetSeconds = 10

// NewRetryBudget returns a budget of ratio retries for each request, 0.2 for one
// in five, and perSecond more, so that little traffic can be retried too. It
// saves up for ten seconds.
func NewRetryBudget(ratio, perSecond float64) (*RetryBudget, error) {
	if !(ratio >= 0 && ratio <= 1) || !(perSecond >= 0) {
		return nil, errors.New("proxy: a retry budget needs a ratio from 0 to 1 and perSecond of 0 or more")
	}
	return &RetryBudget{ratio: ratio, perSecond: perSecond, tokens: perSecond, last: time.Now()}, nil
}

// earn is called for each request.
func (b *RetryBudget) earn() {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refill()
	// What requests earn is bounded as if they came at a hundred a second at
	// least, so that a burst after a quiet time can be retried.
	b.tokens = min(b.tokens+b.ratio, max(b.perSecond, 100*b.ratio)*budgetSeconds)
}

// reserve sets one retry aside, if there is one, until settle is called.
func (b *RetryBudget) reserve() bool {
	if b == nil {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refill()
	const whole = 1 - 1e-6 // ten tenths make no one in floating point
	if b.tokens-b.reserved < whole {
		return false
	}
	b.reserved++
	return true
}

// settle takes the retry that reserve has set aside, or gives it back.
func (b *RetryBudget) settle(retried bool) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reserved--
	if retried {
		b.tokens--
	}
}

// refill adds what time has brought.
func (b *RetryBudget) refill() {
	now := time.Now()
	brought := now.Sub(b.last).Seconds() * b.perSecond
	b.last = now
	if most := b.perSecond * budgetSeconds; b.tokens < most {
		b.tokens = min(b.tokens+brought, most)
	}
}
