package upstream

import "github.com/culvert-go/culvert/internal/clientside"

func init() {
	clientside.RegisterReturner(func(g *Group) bool { return !callsBack(g.o.Balance) })
}

// callsBack reports whether b is given requests by a function of the program's own, which may keep them.
func callsBack(b Balance) bool {
	switch b := b.(type) {
	case hashing, modulo, BalanceFunc:
		return true
	case sticky:
		return callsBack(b.o.Otherwise)
	}
	return false
}
