package upstream

import "sync/atomic"

// period is a round robin that repeats an order made beforehand, so that the cost of a pick does not
// depend on the number of targets. The place of a target that is not available goes to the one after it.
type period struct {
	order []*member
	next  atomic.Uint64
}

func newPeriod(members []*member, before roundRobinPicker) *period {
	var up []*member
	for _, m := range members {
		if !m.isDown() {
			up = append(up, m)
		}
	}
	t := &period{order: smooth(up)}
	if before != nil {
		t.continueFrom(before)
	}
	return t
}

// continueFrom continues the turns of the previous set: at the first of its next places whose
// target is in this set too. Otherwise the first targets would get more requests than their share
// if sets change often.
func (t *period) continueFrom(before roundRobinPicker) {
	places := map[place]int{}
	seen := map[string]int{}
	for i, m := range t.order {
		places[place{m.key(), seen[m.key()]}] = i
		seen[m.key()]++
	}
	for _, p := range before.places() {
		if count := seen[p.key]; count > 0 {
			t.next.Store(uint64(places[place{p.key, p.turn % count}]))
			return
		}
	}
}

// place is one of a target's turns in a period.
type place struct {
	key  string
	turn int
}

func (t *period) places() []place {
	n := len(t.order)
	list := make([]place, n)
	seen := map[string]int{}
	for i, m := range t.order {
		list[i] = place{m.key(), seen[m.key()]}
		seen[m.key()]++
	}
	if n == 0 {
		return nil
	}
	next := int(t.next.Load() % uint64(n))
	return append(list[next:len(list):len(list)], list[:next]...)
}

func (t *period) credits() (owed map[string]int, of int) {
	n := len(t.order)
	owed = map[string]int{}
	if n == 0 {
		return owed, 0
	}
	passed := int(t.next.Load() % uint64(n))
	for i, m := range t.order {
		owed[m.key()] += passed
		if i < passed {
			owed[m.key()] -= n
		}
	}
	return owed, n
}

func (t *period) pick(q query) *member {
	n := uint64(len(t.order))
	at := t.next.Add(1) - 1
	for skipped := range n {
		if m := t.order[(at+skipped)%n]; q.acquire(m) {
			if skipped > 0 {
				t.next.Add(skipped)
			}
			return m
		}
	}
	return nil
}

// targetFailed implements failureCounter. It changes nothing: the order is fixed.
func (*period) targetFailed(*member) {}

// maxPeriod bounds the number of steps to make a period. Weights are rounded if there
// would be more.
const maxPeriod = 1 << 24

// smooth returns one period of the smooth weighted round robin: at each step every
// target gains its weight, and the one with the most is picked and pays the
// total (ngx_http_upstream_get_peer).
func smooth(members []*member) []*member {
	weights, total := shares(members)
	current := make([]int, len(members))
	order := make([]*member, 0, total)
	for range total {
		best := 0
		for i, w := range weights {
			current[i] += w
			if current[i] > current[best] {
				best = i
			}
		}
		current[best] -= total
		order = append(order, members[best])
	}
	return order
}

// shares reduces the weights to the least ones with the same ratios, or with
// nearly the same where the period would become too long.
func shares(members []*member) (weights []int, total int) {
	divisor := 0
	for _, m := range members {
		divisor = gcd(divisor, m.Weight)
		total += m.Weight
	}
	if len(members) == 0 {
		return nil, 0
	}
	if most := max(len(members), maxPeriod/len(members)); total/divisor > most {
		divisor = (total + most - 1) / most
	}
	total = 0
	for _, m := range members {
		w := max(1, m.Weight/divisor)
		weights = append(weights, w)
		total += w
	}
	return weights, total
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
