package upstream

import (
	"slices"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"github.com/culvert-go/culvert/internal/http1"
	"github.com/culvert-go/culvert/internal/random"
)

// member is a target in one set, with the state of its address.
type member struct {
	Target
	*state
	addr      http1.Addr
	host      string // what stands for the address in a URL
	picker    picker // of its tier
	index     int    // in its tier
	only      bool   // the only target of the group: never taken out by failures
	slowStart time.Duration
}

// state is what is known of an address. It outlives the sets that the address
// is in, so that a target which comes again is not taken for healthy.
type state struct {
	current  atomic.Pointer[member] // in the set of now
	inFlight atomic.Int64
	sick     atomic.Bool  // an active check says so
	back     atomic.Int64 // when it came back, for the slow start; 0 if that is over
	out      atomic.Bool  // taken out by failures: MaxFails came within FailTimeout, and no request has succeeded since
	checked  atomic.Int64 // the last failure, or the last request that was let through after it

	left int64 // when the address left the set; 0 if it is in it. Group.mu guards it

	mu       sync.Mutex
	accessed int64   // the last failure
	failures []int64 // the times of the last ones, the oldest first, no more than can count
}

// now is the time in nanoseconds. Only what has failed needs it.
func now() int64 { return time.Now().UnixNano() }

// admission says how strict a pick is.
type admission int

const (
	strict  admission = iota
	anyRate           // targets in their slow start count as the others do
)

// usable says whether m may be asked.
func (m *member) usable(how admission) bool {
	return m.healthy() && !m.full() && (how == anyRate || m.warm())
}

// healthy says whether nothing is known against m.
func (m *member) healthy() bool {
	if m.Down || m.sick.Load() {
		return false
	}
	return !m.failing() || now()-m.checked.Load() > int64(m.FailTimeout)
}

// recovery returns from when on m, which failures have taken out, may get a request; 0 if nothing is
// to be waited for.
func (m *member) recovery() int64 {
	if !m.failing() || m.Down || m.sick.Load() {
		return 0
	}
	return m.checked.Load() + int64(m.FailTimeout) + 1
}

// failing reports whether failures have taken m out.
func (m *member) failing() bool { return m.out.Load() && m.MaxFails > 0 && !m.only }

func (m *member) full() bool { return m.MaxConns > 0 && m.inFlight.Load() >= int64(m.MaxConns) }

// warm lets a target that has come back have a share that grows with time.
func (m *member) warm() bool {
	back := m.back.Load()
	if back == 0 {
		return true
	}
	passed := now() - back
	if passed >= int64(m.slowStart) {
		m.back.CompareAndSwap(back, 0)
		return true
	}
	return random.Int64N(int64(m.slowStart)) < passed
}

// claim takes a place at m, if m is usable still. It lets one request through to
// a target whose fail timeout has passed, and holds the next ones back until that
// one has told how the target is (ngx_http_upstream_round_robin.c).
func (m *member) claim(how admission) bool {
	if !m.usable(how) {
		return false
	}
	if !m.failing() {
		return m.take()
	}
	checked, at := m.checked.Load(), now()
	if at-checked <= int64(m.FailTimeout) || !m.checked.CompareAndSwap(checked, at) {
		return false
	}
	if m.take() {
		return true
	}
	m.checked.CompareAndSwap(at, checked) // no request was let through
	return false
}

// take takes a place at m if there is one. A number above MaxConns is never seen, not for a
// moment: who saw it would take m for full.
func (m *member) take() bool {
	if m.MaxConns == 0 {
		m.inFlight.Add(1)
		return true
	}
	for {
		n := m.inFlight.Load()
		if n >= int64(m.MaxConns) {
			return false
		}
		if m.inFlight.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// failed counts a failure, and takes m out if it is the last one that m may have within
// FailTimeout.
func (m *member) failed() {
	if m.MaxFails < 0 {
		return
	}
	at := now()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.accessed = at
	m.checked.Store(at)
	m.failures = append(m.failures, at)
	m.failures = slices.Delete(m.failures, 0, max(m.expired(at), len(m.failures)-m.MaxFails))
	if len(m.failures) >= m.MaxFails {
		m.out.Store(true)
	}
}

// expired is the number of failures that do not count any more. The caller holds m.mu.
func (m *member) expired(at int64) int {
	return sort.Search(len(m.failures), func(i int) bool { return at-m.failures[i] <= int64(m.FailTimeout) })
}

// countFails returns the number of failures within FailTimeout.
func (m *member) countFails() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.failures) - m.expired(now())
}

// succeeded brings a member back that failures have taken out, if it has not failed since it was
// let through (ngx_http_upstream_free_round_robin_peer).
func (m *member) succeeded() {
	if !m.out.Load() {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.failing() {
		if m.accessed >= m.checked.Load() {
			return
		}
		m.recover()
	}
	m.forgive()
}

// forgive forgets the failures. The caller holds s.mu.
func (s *state) forgive() {
	s.failures = nil
	s.out.Store(false)
}

// notable reports whether something is known against the address.
func (s *state) notable() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.Load() || len(s.failures) > 0 || s.sick.Load()
}

// recover begins the slow start.
func (m *member) recover() {
	if m.slowStart > 0 {
		m.back.Store(now())
	}
}
