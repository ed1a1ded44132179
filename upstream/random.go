package upstream

import "github.com/culvert-go/culvert/internal/random"

// RandomTwo takes two targets at random, by weight, and asks the one with fewer
// requests in flight for its weight. Many gateways in front of the same targets
// do not run after the same one with it, as they do with LeastConn.
func RandomTwo() Balance { return randomTwo{} }

type randomTwo struct{}

func (randomTwo) check([]Target) error { return nil }

func (randomTwo) over(members []*member, _ picker) picker {
	return &dice{members: members, faces: smooth(members)}
}

type dice struct {
	members []*member
	faces   []*member // each member as often as its weight says
}

func (d *dice) pick(q query) *member {
	for range 4 {
		a, b := d.throw(), d.throw()
		if b.lighter(a) {
			a, b = b, a
		}
		if q.claim(a) {
			return a
		}
		if q.claim(b) {
			return b
		}
	}
	// Most targets can't be asked: look at each of them.
	n := len(d.members)
	start := random.IntN(n)
	for i := range n {
		if m := d.members[(start+i)%n]; q.claim(m) {
			return m
		}
	}
	return nil
}

func (d *dice) throw() *member { return d.faces[random.IntN(len(d.faces))] }

// lighter compares requests in flight for the weight, one more included, so that
// weights count when nothing runs.
func (m *member) lighter(than *member) bool {
	return (m.inFlight.Load()+1)*int64(than.Weight) < (than.inFlight.Load()+1)*int64(m.Weight)
}
