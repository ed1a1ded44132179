// Package limit counts requests by keys, for limit_req and limit_conn.
package limit

import (
	"container/list"
	"sync"
	"time"
)

// bucket is a leaky bucket (ngx_http_limit_req_module.c).
type bucket struct {
	key    string
	last   time.Time
	excess int64 // thousandths of a request; negative if one was given back
}

// Buckets are those of a limit_req_zone, one for each key. If there is no room for another, the
// least recently used is removed. They are safe for concurrent use by multiple goroutines.
type Buckets struct {
	max int

	mu   sync.Mutex
	of   map[string]*list.Element // of *bucket
	used *list.List               // the most recently used first
}

// NewBuckets returns Buckets with room for that many keys.
func NewBuckets(keys int) *Buckets {
	return &Buckets{max: keys, of: map[string]*list.Element{}, used: list.New()}
}

// Take adds one request to the key's bucket, unless the bucket would then hold more than most,
// and returns what it holds or would hold. Both are in thousandths of a request, and rate in
// thousandths per second. A new bucket holds nothing with its first request.
func (s *Buckets) Take(key string, rate, most int64, now time.Time) (excess int64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.of[key]
	if e == nil {
		if oldest := s.used.Back(); s.used.Len() >= s.max {
			delete(s.of, oldest.Value.(*bucket).key)
			s.used.Remove(oldest)
		}
		s.of[key] = s.used.PushFront(&bucket{key: key, last: now})
		return 0, true
	}
	s.used.MoveToFront(e)
	b := e.Value.(*bucket)
	if excess = b.with(rate, now); excess > most {
		return excess, false
	}
	b.excess, b.last = excess, now
	return excess, true
}

// GiveBack removes a request that another zone has refused.
func (s *Buckets) GiveBack(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.of[key]; e != nil {
		e.Value.(*bucket).excess -= 1000
	}
}

// with returns what the bucket would hold with one more request.
func (b *bucket) with(rate int64, now time.Time) int64 {
	leaked := rate * max(now.Sub(b.last).Milliseconds(), 0) / 1000
	return max(b.excess-leaked+1000, 0)
}
