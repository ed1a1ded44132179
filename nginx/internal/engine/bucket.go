package engine

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

// buckets are those of a limit_req_zone, one for each key. If there is no room for another, the
// least recently used is removed.
type buckets struct {
	max int

	mu   sync.Mutex
	of   map[string]*list.Element // of *bucket
	used *list.List               // the most recently used first
}

func newBuckets(keys int) *buckets {
	return &buckets{max: keys, of: map[string]*list.Element{}, used: list.New()}
}

// take adds one request to the key's bucket, unless the bucket would then hold more than most,
// and returns what it holds or would hold. A new bucket holds nothing with its first request.
func (s *buckets) take(key string, rate, most int64, now time.Time) (excess int64, ok bool) {
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

// giveBack removes a request that another zone has refused.
func (s *buckets) giveBack(key string) {
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
