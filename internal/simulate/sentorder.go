package simulate

import "slices"

// asSent returns the sights of the request in the order of the gateway's attempts: an attempt at a target that is far away may
// arrive after the next attempt, at another target.
func (r *ruler) asSent() []*Sight {
	var tried []string
	for _, p := range r.w.journal.passages {
		if p.Token == r.e.Token {
			for i := range p.Attempts {
				tried = append(tried, p.Attempts[i].Target)
			}
		}
	}
	sights := slices.Clone(r.sights)
	place := func(s *Sight) int { return slices.Index(tried, s.Target) }
	for _, s := range sights {
		if n := place(s); n < 0 || slices.Contains(tried[n+1:], s.Target) {
			return sights // the journal does not show which attempt at a target was which
		}
	}
	slices.SortStableFunc(sights, func(a, b *Sight) int { return place(a) - place(b) })
	return sights
}
