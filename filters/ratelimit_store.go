package filters

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// RateLimitStore holds the buckets of RateLimit in a place that several gateways share.
// examples/ratelimit-redis is one for Redis and Valkey.
type RateLimitStore interface {
	// Take takes one token from the bucket of key, if it has one, and returns the tokens that remain. All that it does
	// is one step: two calls at a time never take the same token. A key that is not known has a full bucket. One whose
	// bucket is full may be forgotten.
	//
	// key is not empty, and of any bytes and length. Filters that share a store have the same keys: the
	// store must keep those of different limits apart. bucket is the same in each call of one filter.
	//
	// If the store can't be reached, Take returns an error, and the state is not used. It must return soon when ctx
	// ends, which is the request's context with a deadline after StoreTimeout. It must be safe for
	// concurrent use. A panic of it is the handler's.
	Take(ctx context.Context, key string, bucket RateLimitBucket) (RateLimitState, error)
}

// RateLimitBucket is the kind of a limit's buckets.
type RateLimitBucket struct {
	// Burst is how many tokens a bucket holds, at least 1.
	Burst int
	// Interval is the time in which a bucket gains one token, at least 1 ns. Burst times Interval is not
	// more than the largest Duration.
	Interval time.Duration
}

// RateLimitState describes a bucket after a token was taken, or not.
type RateLimitState struct {
	// OK reports whether there was a token.
	OK bool
	// Tokens is the number of whole tokens that are left.
	Tokens int
	// Next is the time until there is one more, 0 if the bucket is full. If OK is false, it is the time after
	// which the client may retry.
	Next time.Duration
}

// capacity returns the time in which an empty bucket becomes full.
func (b RateLimitBucket) capacity() time.Duration { return time.Duration(b.Burst) * b.Interval }

// take takes a token from a bucket that will be full in missing, and returns when it will be full then.
func (b RateLimitBucket) take(missing time.Duration) (RateLimitState, time.Duration) {
	s := RateLimitState{OK: missing <= b.capacity()-b.Interval}
	if s.OK {
		missing += b.Interval
	}
	held := b.capacity() - missing
	s.Tokens = int(held / b.Interval)
	if missing > 0 {
		s.Next = b.Interval - held%b.Interval
	}
	return s, missing
}

// failureLog logs failures, one a second at most. The zero value is ready for use.
type failureLog struct {
	mu      sync.Mutex
	next    time.Time
	skipped int
}

func (f *failureLog) log(ctx context.Context, l *slog.Logger, err error) {
	f.mu.Lock()
	now := time.Now()
	if now.Before(f.next) {
		f.skipped++
		f.mu.Unlock()
		return
	}
	skipped := f.skipped
	f.next, f.skipped = now.Add(time.Second), 0
	f.mu.Unlock()
	l.LogAttrs(ctx, slog.LevelError, "rate limit", slog.String("error", err.Error()), slog.Int("not_logged", skipped))
}
