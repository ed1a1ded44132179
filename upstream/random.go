package upstream

import "github.com/culvert-go/culvert/internal/random"

// RandomTwo draws two targets at random, by weight, and selects the one with fewer
// requests in flight in proportion to its weight. It avoids herding, which LeastConn
// causes, when many gateways share the targets.
func RandomTwo() Balance { return randomTwo{} }

type randomTwo struct{}

func (randomTwo) check([]Target) error { return nil }

func (randomTwo) newPicker(members []*member, _ picker) picker {
	return &twoRandom{members: members, byWeight: smooth(members)}
}

// twoRandom picks for RandomTwo.
type twoRandom struct {
	members  []*member
	byWeight []*member // each member in proportion to its weight
}

func (p *twoRandom) pick(q query) *member {
	for range 4 {
		a, b := p.draw(), p.draw()
		if b.lighter(a) {
			a, b = b, a
		}
		if q.acquire(a) {
			return a
		}
		if q.acquire(b) {
			return b
		}
	}
	// Most targets are not available: look at each of them.
	n := len(p.members)
	start := random.IntN(n)
	for i := range n {
		if m := p.members[(start+i)%n]; q.acquire(m) {
			return m
		}
	}
	return nil
}

func (p *twoRandom) draw() *member { return p.byWeight[random.IntN(len(p.byWeight))] }

// lighter reports whether m has fewer requests in flight than another member, in
// proportion to its weight. One more is added, so that weights count with none in flight.
func (m *member) lighter(than *member) bool {
	return (m.inFlight.Load()+1)*int64(than.Weight) < (than.inFlight.Load()+1)*int64(m.Weight)
}
