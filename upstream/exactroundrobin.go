package upstream

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"sync"
)

// maxExact is the maximum number of targets of exactRoundRobin: a pick looks at each of them, and a
// set of them is one word.
const maxExact = 64

// exactRoundRobin is nginx's smooth weighted round robin (ngx_http_upstream_get_peer): in each turn
// the available targets gain their weights, and the one that has the most is picked and pays
// what all of them have gained. Only the targets that the request has not tried take part in the turn
// of a retry: the others neither gain nor lose by it.
type exactRoundRobin struct {
	mu      sync.Mutex
	entries []exactEntry // by member.index
	total   int          // of the weights of the targets that are not down
}

type exactEntry struct {
	m         *member
	current   int
	effective int // the weight, or less after failures; each turn adds one until it is the weight
}

func newExactRoundRobin(members []*member, before roundRobinPicker) *exactRoundRobin {
	t := &exactRoundRobin{entries: make([]exactEntry, len(members))}
	for i, m := range members {
		t.entries[i] = exactEntry{m: m, effective: m.Weight}
		if !m.isDown() {
			t.total += m.Weight
		}
	}
	if before != nil {
		t.continueFrom(before)
	}
	return t
}

// continueFrom credits each target with what it was owed in the previous set, so that a target gets
// its share however often sets change. A new target gets the least credit of all.
func (t *exactRoundRobin) continueFrom(before roundRobinPicker) {
	owed, of := before.credits()
	times, least := map[string]int{}, 0
	for _, s := range t.entries {
		times[s.m.key()]++
		least = min(least, owed[s.m.key()])
	}
	for i := range t.entries {
		s := &t.entries[i]
		credit, known := owed[s.m.key()]
		if !known {
			credit = least
		}
		if of > 0 {
			s.current = credit * t.total / of / times[s.m.key()]
		}
	}
}

func (t *exactRoundRobin) credits() (owed map[string]int, of int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	owed = map[string]int{}
	for _, s := range t.entries {
		owed[s.m.key()] += s.current
	}
	return owed, t.total
}

func (t *exactRoundRobin) places() []place {
	t.mu.Lock()
	defer t.mu.Unlock()
	entries := slices.Clone(t.entries)
	slices.SortStableFunc(entries, func(a, b exactEntry) int {
		return cmp.Compare(b.current+b.m.Weight, a.current+a.m.Weight)
	})
	var list []place
	for _, s := range entries {
		list = append(list, place{key: s.m.key()})
	}
	return list
}

func (t *exactRoundRobin) pick(q query) *member {
	t.mu.Lock()
	defer t.mu.Unlock()
	gain, strictly := t.usable(q), q.how == strict
	q.how = ignoreSlowStart // warm decides at random, so it is called once
	for able := gain; able != 0; {
		best := t.best(able)
		able &^= 1 << best
		switch m := t.entries[best].m; {
		case strictly && !m.warm():
			t.turn(best, gain) // a turn lost to the slow start
		case q.acquire(m):
			t.turn(best, gain)
			return m
		default:
			gain &^= 1 << best
		}
	}
	return nil
}

// usable returns the set of the targets that take part in a turn.
func (t *exactRoundRobin) usable(q query) (entries uint64) {
	for i := range t.entries {
		if m := t.entries[i].m; !q.wasTried(m) && m.usable(ignoreSlowStart) {
			entries |= 1 << i
		}
	}
	return entries
}

// best returns the index of the target in entries that has the most in this turn, the first one among equals.
func (t *exactRoundRobin) best(entries uint64) int {
	best, most := 0, math.MinInt
	for ; entries != 0; entries &= entries - 1 {
		i := bits.TrailingZeros64(entries)
		if has := t.entries[i].current + t.entries[i].effective; has > most {
			best, most = i, has
		}
	}
	return best
}

// turn counts a turn of the targets in gain, in which the target best was picked.
func (t *exactRoundRobin) turn(best int, gain uint64) {
	total := 0
	for ; gain != 0; gain &= gain - 1 {
		s := &t.entries[bits.TrailingZeros64(gain)]
		s.current += s.effective
		total += s.effective
		if s.effective < s.m.Weight {
			s.effective++
		}
	}
	t.entries[best].current -= total
}

// targetFailed implements failureCounter: it lowers what m gains in a turn, which then rises by one
// with each turn (ngx_http_upstream_free_round_robin_peer).
func (t *exactRoundRobin) targetFailed(m *member) {
	if m.MaxFails <= 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	s := &t.entries[m.index]
	s.effective = max(0, s.effective-m.Weight/m.MaxFails)
}
