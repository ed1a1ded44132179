package upstream

// weighted maps numbers to targets: each target, down ones included, has as many as its weight.
type weighted struct {
	members []*member
	total   uint // of the weights
}

func newWeighted(members []*member) weighted {
	s := weighted{members: members}
	for _, m := range members {
		s.total += uint(m.Weight)
	}
	return s
}

// at returns the target of hash modulo the total weight.
func (s weighted) at(hash uint) *member {
	w := hash % s.total
	for _, m := range s.members {
		if w < uint(m.Weight) {
			return m
		}
		w -= uint(m.Weight)
	}
	return nil
}
