package simulate

import "slices"

// asSent returns what targets saw of the request in the order in which the gateway asked them: what it sends to a target that
// is far away may arrive behind the next attempt, at another one.
func (r *ruler) asSent() []*Sight {
	var asked []string
	for _, p := range r.w.journal.passages {
		if p.Token == r.e.Token {
			for i := range p.Attempts {
				asked = append(asked, p.Attempts[i].Target)
			}
		}
	}
	sights := slices.Clone(r.sights)
	place := func(s *Sight) int { return slices.Index(asked, s.Target) }
	for _, s := range sights {
		if n := place(s); n < 0 || slices.Contains(asked[n+1:], s.Target) {
			return sights // the journal does not tell which attempt at a target was which
		}
	}
	slices.SortStableFunc(sights, func(a, b *Sight) int { return place(a) - place(b) })
	return sights
}
