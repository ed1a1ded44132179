// Package ratelimitredis holds the buckets of filters.RateLimit in Redis or Valkey, so that several gateways share one
// limit.
package ratelimitredis

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/culvert-go/culvert/filters"
)

// take takes a token from the bucket at KEYS[1], which is the time at which it is full again, in microseconds of the
// server's clock. ARGV are the interval between two tokens in microseconds and the burst. All numbers are integers below
// 2^53, which Lua represents exactly. It returns whether there was a token, and the time until the bucket is full.
// The key expires when the bucket is full. A server whose clock was set back has buckets that are empty, and none that
// is emptier.
var take = redis.NewScript(`
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local interval = tonumber(ARGV[1])
local capacity = interval * ARGV[2]
local full = tonumber(redis.call('GET', KEYS[1]) or 0)
local missing = math.min(math.max(full - now, 0), capacity)
if missing + interval > capacity then
	return {0, missing}
end
missing = missing + interval
redis.call('SET', KEYS[1], string.format('%.0f', now + missing), 'PX', string.format('%.0f', math.ceil(missing / 1000)))
return {1, missing}
`)

// maxCapacity is the longest time in which a bucket of a Store becomes full: about a century.
const maxCapacity = 100 * 365 * 24 * time.Hour

// Store is a filters.RateLimitStore in Redis or Valkey, of version 5 or later. Each call is one round trip and one atomic
// step. The server's clock is the only one, so that those of the gateways need not agree. Buckets that are full are not
// in its memory; to bound it, set maxmemory and a policy of eviction in the server: a bucket that is evicted is full.
type Store struct {
	client redis.Scripter
	prefix string
}

// New returns a Store that uses the client, a *redis.Client or *redis.ClusterClient for instance, which remains the caller's
// to close. The names of the store's keys begin with prefix: give each limit a prefix of its own, such as
// "gateway:login:".
//
// It returns an error if the client's options do not have ContextTimeoutEnabled: RateLimitOptions.StoreTimeout would not bound
// the wait for a server that is silent, but the client's ReadTimeout, which is 3 seconds for each of its four attempts.
func New(client redis.Scripter, prefix string) (*Store, error) {
	enabled := true // what other kinds of client do is theirs
	switch c := client.(type) {
	case *redis.Client:
		enabled = c.Options().ContextTimeoutEnabled
	case *redis.ClusterClient:
		enabled = c.Options().ContextTimeoutEnabled
	case *redis.Ring:
		enabled = c.Options().ContextTimeoutEnabled
	}
	if !enabled {
		return nil, errors.New("ratelimitredis: set ContextTimeoutEnabled in the client's options, so that a silent server is not waited for")
	}
	return &Store{client: client, prefix: prefix}, nil
}

// Take implements filters.RateLimitStore. An interval that is not a whole number of microseconds is rounded up.
func (s *Store) Take(ctx context.Context, key string, bucket filters.RateLimitBucket) (filters.RateLimitState, error) {
	interval := (bucket.Interval-1)/time.Microsecond + 1 // in microseconds
	if interval > time.Duration(maxCapacity.Microseconds())/time.Duration(bucket.Burst) {
		return filters.RateLimitState{}, errors.New("ratelimitredis: the bucket is too large")
	}
	reply, err := take.Run(ctx, s.client, []string{s.prefix + key}, int64(interval), bucket.Burst).Int64Slice()
	if err != nil {
		return filters.RateLimitState{}, fmt.Errorf("ratelimitredis: %w", err)
	}
	if len(reply) != 2 || reply[1] < 0 || reply[1] > math.MaxInt64/int64(time.Microsecond) {
		return filters.RateLimitState{}, fmt.Errorf("ratelimitredis: unexpected reply %v", reply)
	}
	missing := time.Duration(reply[1])
	held := max(interval*time.Duration(bucket.Burst)-missing, 0)
	state := filters.RateLimitState{OK: reply[0] == 1, Tokens: int(held / interval)}
	if missing > 0 {
		state.Next = (interval - held%interval) * time.Microsecond
	}
	return state, nil
}
