package filters

import (
	"container/heap"
	"crypto/sha256"
	"sync"
	"time"
)

// bucketKey stands for a key in a fixed amount of memory: a short key itself, behind its length, or the hash of a
// longer one.
type bucketKey [sha256.Size]byte

func bucketKeyOf[K string | []byte](key K) (k bucketKey) {
	if len(key) < len(k) {
		k[0] = byte(len(key))
		copy(k[1:], key)
		return k
	}
	var space [256]byte // most keys need no other memory
	k = sha256.Sum256(append(space[:0], key...))
	k[0] = 0xff // which is no length
	return k
}

// buckets are those of a RateLimit in memory. They are safe for concurrent use.
//
// A bucket is a time, the one at which it is full again. Bucket by bucket that time only grows, and a new key begins
// with the smallest of them at the earliest. So a key that was removed comes back with no more tokens than it had.
type buckets struct {
	kind  RateLimitBucket
	max   int
	start time.Time // of the times

	mu    sync.Mutex
	of    map[bucketKey]*bucket
	order bucketOrder
}

type bucket struct {
	key    bucketKey // zero: none yet
	fullAt time.Duration
	place  time.Duration // what fullAt was when the order was made; not later than it
}

func newBuckets(most int, kind RateLimitBucket) *buckets {
	return &buckets{kind: kind, max: most, start: time.Now(), of: map[bucketKey]*bucket{}}
}

// take takes a token from the bucket of key, if it has one.
func (m *buckets) take(key bucketKey) RateLimitState {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Since(m.start)
	b := m.of[key]
	if b == nil {
		b = m.forNew(now)
	}
	s, missing := m.kind.take(max(b.fullAt-now, 0))
	if !s.OK {
		return s
	}
	b.fullAt = now + missing
	if b.key != key {
		delete(m.of, b.key)
		b.key = key
		m.of[key] = b
	}
	return s
}

// forNew returns the bucket for a new key: a full one whose key can be forgotten, one more or, if there are as many
// as there may be, the one with the most tokens.
func (m *buckets) forNew(now time.Duration) *bucket {
	if len(m.order) > 0 {
		fullest := m.fullest()
		if fullest.fullAt <= now || len(m.order) >= m.max {
			return fullest
		}
	}
	b := &bucket{fullAt: now, place: now}
	heap.Push(&m.order, b)
	return b
}

// fullest returns the bucket with the most tokens. A bucket that was used since the order was made is put in its place when
// it is the first one, so that known keys need no order.
func (m *buckets) fullest() *bucket {
	first := m.order[0]
	for first.place != first.fullAt {
		first.place = first.fullAt
		heap.Fix(&m.order, 0)
		first = m.order[0]
	}
	return first
}

// bucketOrder is a heap of buckets, by place.
type bucketOrder []*bucket

func (o bucketOrder) Len() int           { return len(o) }
func (o bucketOrder) Less(i, j int) bool { return o[i].place < o[j].place }
func (o bucketOrder) Swap(i, j int)      { o[i], o[j] = o[j], o[i] }
func (o *bucketOrder) Push(b any)        { *o = append(*o, b.(*bucket)) }
func (o *bucketOrder) Pop() any          { panic("filters: buckets are not removed") }
