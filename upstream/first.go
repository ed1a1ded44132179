package upstream

// First asks the first target that can be asked, in the order given: one serves,
// the others stand by.
func First() Balance { return first{} }

type first struct{}

func (first) check([]Target) error { return nil }

func (first) over(members []*member, _ picker) picker { return inOrder(members) }

type inOrder []*member

func (list inOrder) pick(q query) *member {
	for _, m := range list {
		if q.claim(m) {
			return m
		}
	}
	return nil
}
