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
	set       *targets
	addr      http1.Addr
	host      string // the host for the address in a URL
	picker    picker // of its tier
	index     int    // in its tier
	drained   bool   // Group.SetDrained
	only      bool   // the only target of the group: failures never take it out
	slowStart time.Duration

	maxFailTimeout time.Duration // Options.MaxFailTimeout
}

// state is the health and load of an address. It outlives the sets that the address
// is in, so that a failing target that is added again does not count as healthy. Times
// are those of now.
type state struct {
	current     atomic.Pointer[member] // in the current set, or the last one that had the address
	inFlight    atomic.Int64
	unhealthy   atomic.Bool           // by active checks
	checkErr    atomic.Pointer[error] // of the last check that counted; nil if it was good
	recoveredAt atomic.Int64          // when the slow start began; 0 if there is none
	out         atomic.Bool           // taken out by failures (failed), and no request has succeeded since
	checked     atomic.Int64          // the time of the last failure, or of the last request that was let through after it

	ejections atomic.Int64 // how often in a row it was taken out (outage)
	backAt    atomic.Int64 // when it was last brought back; 0 if it never was

	removedAt int64 // when the address left the set; 0 if it is in it. Group.mu guards it
	drained   bool  // by Group.SetDrained. Group.mu guards it

	mu       sync.Mutex // guards what follows
	accessed int64      // the time of the last failure
	failures []int64    // the times of the last failures, the oldest first, no more than can count
	rate     *failRate  // nil if nothing was counted for Options.FailRate
}

// now returns the time in nanoseconds since 1970. Only targets that have failed need it.
func now() int64 { return time.Now().UnixNano() }

// admission is how strict a pick is.
type admission int

const (
	strict          admission = iota
	ignoreSlowStart           // ignores the slow start of targets
	wanted                    // the request is for this target: ignores that it drains, too
)

// usable reports whether a request may be sent to m.
func (m *member) usable(how admission) bool {
	return m.available() && !m.full() && (how == wanted || !m.Draining && (how == ignoreSlowStart || m.warm()))
}

// available reports whether m's health permits a request, or does not count (Options.PanicThreshold).
func (m *member) available() bool { return m.healthy() || !m.isDown() && m.set.panicking.Load() }

// isDown reports whether m gets no requests because the program says so.
func (m *member) isDown() bool { return m.Down || m.drained }

// healthy reports whether m is up: not down, not unhealthy by active checks, and not taken out by
// failures within FailTimeout.
func (m *member) healthy() bool {
	if m.isDown() || m.unhealthy.Load() {
		return false
	}
	return !m.failing() || now()-m.checked.Load() > m.outage()
}

// outage returns for how long m gets no request when failures have taken it out.
func (m *member) outage() int64 {
	times, once := m.ejections.Load(), int64(m.FailTimeout)
	most := max(once, int64(m.maxFailTimeout))
	if times <= 1 || once == 0 {
		return once
	}
	if times > most/once {
		return most
	}
	return times * once
}

// retryAt returns the time from which m, which failures have taken out, may get a request; 0 if
// failures have not taken m out, or if m is out for another reason too.
func (m *member) retryAt() int64 {
	if !m.failing() || m.isDown() || m.unhealthy.Load() {
		return 0
	}
	return m.checked.Load() + m.outage() + 1
}

// failing reports whether failures have taken m out.
func (m *member) failing() bool { return m.out.Load() && m.MaxFails >= 0 && !m.only }

func (m *member) full() bool { return m.MaxConns > 0 && m.inFlight.Load() >= int64(m.MaxConns) }

// warm reports whether m's slow start lets a request through. It decides at random, with a
// probability that grows with time.
func (m *member) warm() bool {
	recoveredAt := m.recoveredAt.Load()
	if recoveredAt == 0 {
		return true
	}
	passed := now() - recoveredAt
	if passed >= int64(m.slowStart) {
		m.recoveredAt.CompareAndSwap(recoveredAt, 0)
		return true
	}
	return random.Int64N(int64(m.slowStart)) < passed
}

// acquire adds a request to m if m is usable, and reports whether it did. It lets
// one request through to a target that failures have taken out when FailTimeout has
// passed, and no further ones until that one has succeeded, or FailTimeout has passed
// again (ngx_http_upstream_round_robin.c). While the set is panicking it lets the others through, too.
func (m *member) acquire(how admission) bool {
	if !m.usable(how) {
		return false
	}
	if !m.failing() {
		return m.addInFlight()
	}
	checked, at := m.checked.Load(), now()
	if at-checked <= m.outage() || !m.checked.CompareAndSwap(checked, at) {
		return m.set.panicking.Load() && m.addInFlight()
	}
	if m.addInFlight() {
		return true
	}
	m.checked.CompareAndSwap(at, checked) // no request was let through
	return false
}

// addInFlight adds one to the requests in flight, and reports whether it did: not above MaxConns. The
// number is never above it, not even for a moment in which another goroutine would find m full.
func (m *member) addInFlight() bool {
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

// failed counts a failure, and takes m out if it has MaxFails failures within FailTimeout, or the share
// Options.FailRate, and g can do without it.
func (m *member) failed(g *Group) {
	if m.MaxFails < 0 {
		return
	}
	at := now()
	m.mu.Lock()
	defer m.mu.Unlock()
	again := m.accessed < m.checked.Load() // the request that was let through has failed
	m.accessed = at
	m.checked.Store(at)
	m.failures = append(m.failures, at)
	m.failures = slices.Delete(m.failures, 0, max(m.expired(at), len(m.failures)-m.MaxFails))
	reached := m.countOutcome(&g.o, at, true)
	switch {
	case m.out.Load():
		if again {
			m.ejections.Add(1)
		}
	case reached || m.MaxFails > 0 && len(m.failures) >= m.MaxFails:
		g.eject(m, at)
	}
}

// expired returns the number of failures that do not count any more. The caller holds m.mu.
func (m *member) expired(at int64) int {
	return sort.Search(len(m.failures), func(i int) bool { return at-m.failures[i] <= int64(m.FailTimeout) })
}

// countFails returns the number of failures within FailTimeout.
func (m *member) countFails() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.failures) - m.expired(now())
}

// succeeded ends the outage of a member that failures have taken out, unless it has failed since the
// last request was let through (ngx_http_upstream_free_round_robin_peer).
func (m *member) succeeded(g *Group) {
	if !m.out.Load() {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.failing() {
		if m.accessed >= m.checked.Load() {
			return
		}
		m.startSlowStart()
	}
	m.resetFailures()
	g.recount()
}

// resetFailures forgets the failures, except how often they have taken the target out. The caller holds s.mu.
func (s *state) resetFailures() {
	s.failures, s.rate = nil, nil
	s.bringBack()
}

// bringBack ends an outage.
func (s *state) bringBack() {
	if s.out.Swap(false) {
		s.backAt.Store(now())
	}
}

// hasFailed reports whether requests or active checks to the address have failed, or took it out before.
func (s *state) hasFailed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.Load() || len(s.failures) > 0 || s.unhealthy.Load() || s.ejections.Load() > 0 || s.rate.hasFailures()
}

// startSlowStart starts the slow start, if Options.SlowStart is set.
func (m *member) startSlowStart() {
	if m.slowStart > 0 {
		m.recoveredAt.Store(now())
	}
}
