package upstream

// weighted gives each target a part of the numbers, as large as its weight, down targets included.
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

// at returns the target in whose part the remainder of hash lies.
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
