package proxy

import (
	"errors"
	"sync"
	"time"
)

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
// begins with perSecond retries, and saves up for ten seconds: at most ten times
// perSecond or 1000 times ratio, whichever is more. Each request counts once for the ratio, regardless of its number of attempts.
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
