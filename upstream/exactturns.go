package upstream

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"sync"
)

// maxExact is the most targets that exactTurns takes: a pick looks at each of them, and a set of
// them is one word.
const maxExact = 64

// exactTurns is nginx's smooth weighted round robin (ngx_http_upstream_get_peer): in each turn the
// targets that can be asked gain their weights, and the one that has the most is asked and pays
// what all of them have gained. A retry is a turn of those that the request has not tried: the
// others neither gain nor lose by it.
type exactTurns struct {
	mu    sync.Mutex
	slots []turnSlot // by member.index
	total int        // of the weights of those that are not down
}

type turnSlot struct {
	m         *member
	current   int
	effective int // the weight, less after failures: each turn gives one back
}

func newExactTurns(members []*member, before turns) *exactTurns {
	t := &exactTurns{slots: make([]turnSlot, len(members))}
	for i, m := range members {
		t.slots[i] = turnSlot{m: m, effective: m.Weight}
		if !m.Down {
			t.total += m.Weight
		}
	}
	if before != nil {
		t.follow(before)
	}
	return t
}

// follow gives each target what it was owed in the set before, so that a target gets its share
// however often sets change. One that is new stands behind the others.
func (t *exactTurns) follow(before turns) {
	owed, of := before.credits()
	times, least := map[string]int{}, 0
	for _, s := range t.slots {
		times[s.m.Addr]++
		least = min(least, owed[s.m.Addr])
	}
	for i := range t.slots {
		s := &t.slots[i]
		credit, known := owed[s.m.Addr]
		if !known {
			credit = least
		}
		if of > 0 {
			s.current = credit * t.total / of / times[s.m.Addr]
		}
	}
}

func (t *exactTurns) credits() (owed map[string]int, of int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	owed = map[string]int{}
	for _, s := range t.slots {
		owed[s.m.Addr] += s.current
	}
	return owed, t.total
}

func (t *exactTurns) places() []place {
	t.mu.Lock()
	defer t.mu.Unlock()
	slots := slices.Clone(t.slots)
	slices.SortStableFunc(slots, func(a, b turnSlot) int {
		return cmp.Compare(b.current+b.m.Weight, a.current+a.m.Weight)
	})
	var list []place
	for _, s := range slots {
		list = append(list, place{addr: s.m.Addr})
	}
	return list
}

func (t *exactTurns) pick(q query) *member {
	t.mu.Lock()
	defer t.mu.Unlock()
	gain, strictly := t.usable(q), q.how == strict
	q.how = anyRate // warm replies at random: it is called once
	for able := gain; able != 0; {
		best := t.best(able)
		able &^= 1 << best
		switch m := t.slots[best].m; {
		case strictly && !m.warm():
			t.turn(best, gain) // lost to the slow start
		case q.claim(m):
			t.turn(best, gain)
			return m
		default:
			gain &^= 1 << best
		}
	}
	return nil
}

// usable returns the slots of the targets that take part in a turn.
func (t *exactTurns) usable(q query) (slots uint64) {
	for i := range t.slots {
		if m := t.slots[i].m; !q.wasTried(m) && m.usable(anyRate) {
			slots |= 1 << i
		}
	}
	return slots
}

// best returns the one of slots that has the most in this turn, the first one among equals.
func (t *exactTurns) best(slots uint64) int {
	best, most := 0, math.MinInt
	for ; slots != 0; slots &= slots - 1 {
		i := bits.TrailingZeros64(slots)
		if has := t.slots[i].current + t.slots[i].effective; has > most {
			best, most = i, has
		}
	}
	return best
}

// turn counts a turn of the slots in gain, which was best's.
func (t *exactTurns) turn(best int, gain uint64) {
	total := 0
	for ; gain != 0; gain &= gain - 1 {
		s := &t.slots[bits.TrailingZeros64(gain)]
		s.current += s.effective
		total += s.effective
		if s.effective < s.m.Weight {
			s.effective++
		}
	}
	t.slots[best].current -= total
}

// targetFailed lowers what m gains, for as many turns as it takes to get it back
// (ngx_http_upstream_free_round_robin_peer).
func (t *exactTurns) targetFailed(m *member) {
	if m.MaxFails < 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	s := &t.slots[m.index]
	s.effective = max(0, s.effective-m.Weight/m.MaxFails)
}
