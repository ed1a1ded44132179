package upstream

// RoundRobin lets targets take turns by weight, in the order of nginx's smooth
// weighted round robin: weights 5, 1, 1 give a a b a c a a. A target that can't be
// asked, or that the request has tried, takes no part in a turn, and a failure
// lowers a target's share for a while, as in nginx. Among more than 64 targets
// the order is made beforehand, so that a pick costs the same whatever their
// number, and the place of a target that can't be asked goes to the one after it.
// When the targets change, the one whose turn it is keeps it.
func RoundRobin() Balance { return roundRobin{} }

type roundRobin struct{}

func (roundRobin) check([]Target) error { return nil }

func (roundRobin) over(members []*member, before picker) picker {
	return newTurns(members, turnsOf(before))
}

// turnsOf returns the turns that a picker takes, nil for one that takes none.
func turnsOf(p picker) turns {
	t, _ := p.(turns)
	return t
}

// turns is a round robin.
type turns interface {
	picker
	failureCounter
	// places returns the places of a period that are to come, the next one first.
	places() []place
	// credits returns what each target is owed, in parts of a request of which of make one: less
	// than 0 for one that has got more than its share.
	credits() (owed map[string]int, of int)
}

// newTurns goes on with the turns of the set before; before is nil if there are none.
func newTurns(members []*member, before turns) turns {
	if len(members) <= maxExact {
		return newExactTurns(members, before)
	}
	return newPeriod(members, before)
}
