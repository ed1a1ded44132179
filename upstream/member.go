package upstream

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// member is a target in one set, with the state of its address.
type member struct {
	Target
	*state
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
	fails    atomic.Int32

	mu       sync.Mutex
	accessed int64        // the last failure
	checked  atomic.Int64 // the last failure, or the last try after it
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

// failing says whether m has failed as often as it may.
func (m *member) failing() bool {
	return m.MaxFails > 0 && int(m.fails.Load()) >= m.MaxFails && !m.only
}

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
	return rand.Int64N(int64(m.slowStart)) < passed
}

// claim takes a place at m, if m is usable still. It lets one request through to
// a target whose fail timeout has passed, and holds the next ones back until that
// one has told how the target is (ngx_http_upstream_round_robin.c).
func (m *member) claim(how admission) bool {
	if !m.usable(how) {
		return false
	}
	if m.failing() {
		if checked := m.checked.Load(); !m.checked.CompareAndSwap(checked, now()) {
			return false
		}
	}
	if n := m.inFlight.Add(1); m.MaxConns > 0 && n > int64(m.MaxConns) {
		m.inFlight.Add(-1)
		return false
	}
	return true
}

// failed counts a failure.
func (m *member) failed() {
	at := now()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.accessed = at
	m.checked.Store(at)
	m.fails.Add(1)
}

// succeeded forgets the failures that came before the last try.
func (m *member) succeeded() {
	if m.fails.Load() == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.accessed >= m.checked.Load() {
		return // failed since
	}
	if m.failing() {
		m.recover()
	}
	m.fails.Store(0)
}

// recover begins the slow start.
func (m *member) recover() {
	if m.slowStart > 0 {
		m.back.Store(now())
	}
}
