package upstream

// RoundRobin selects targets in turn by weight, in the order of nginx's smooth
// weighted round robin: weights 5, 1, 1 give a a b a c a a. A target that is not
// available, or that the request has tried, takes no part in a turn, and a failure
// lowers a target's share for a while, as in nginx. When the targets change, the turns
// continue.
//
// For more than 64 targets the order is made beforehand, so that the cost of a pick
// does not depend on their number. The place of a target that is not available then
// goes to the one after it, and failures do not lower a target's share.
func RoundRobin() Balance { return roundRobin{} }

type roundRobin struct{}

func (roundRobin) check([]Target) error { return nil }

func (roundRobin) newPicker(members []*member, before picker) picker {
	return newRoundRobin(members, roundRobinOf(before))
}

// roundRobinOf returns the round robin of a picker, nil if it has none.
func roundRobinOf(p picker) roundRobinPicker {
	t, _ := p.(roundRobinPicker)
	return t
}

// roundRobinPicker is a round robin whose turns a picker of the next set can continue.
type roundRobinPicker interface {
	picker
	failureCounter
	// places returns the next places of a period, in their order.
	places() []place
	// credits returns how much of a request each target is owed, by address, as multiples of 1/of:
	// less than 0 for a target that has got more than its share.
	credits() (owed map[string]int, of int)
}

// newRoundRobin returns a picker that continues the turns of before, the round robin of the previous
// set; nil if there was none.
func newRoundRobin(members []*member, before roundRobinPicker) roundRobinPicker {
	if len(members) <= maxExact {
		return newExactRoundRobin(members, before)
	}
	return newPeriod(members, before)
}
