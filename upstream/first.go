package upstream

// First selects the first available target, in the order given: one target serves,
// and the others stand by.
func First() Balance { return first{} }

type first struct{}

func (first) check([]Target) error { return nil }

func (first) newPicker(members []*member, _ picker) picker { return inOrder(members) }

type inOrder []*member

func (list inOrder) pick(q query) *member {
	for _, m := range list {
		if q.acquire(m) {
			return m
		}
	}
	return nil
}
