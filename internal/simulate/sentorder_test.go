package simulate

import (
	"slices"
	"testing"

	"github.com/culvert-go/culvert"
)

// An attempt at a target that is far away may arrive after the next attempt, at another target. asSent has the gateway's order.
func TestOrderOfAttempts(t *testing.T) {
	for _, c := range []struct {
		name                string
		tried, seen, sorted []string
	}{
		{"as they came", []string{"a", "b"}, []string{"a", "b"}, []string{"a", "b"}},
		{"the far one is late", []string{"a", "b"}, []string{"b", "a"}, []string{"a", "b"}},
		{"twice in one attempt", []string{"a", "b"}, []string{"b", "a", "a"}, []string{"a", "a", "b"}},
		{"two attempts", []string{"a", "b", "a"}, []string{"b", "a", "a"}, []string{"b", "a", "a"}},
		{"not known", nil, []string{"b", "a"}, []string{"b", "a"}},
	} {
		p, r := &Passage{Token: 1}, ruler{w: &world{journal: NewJournal()}, e: &ExchangePlan{Token: 1}}
		for _, target := range c.tried {
			p.Attempts = append(p.Attempts, Attempt{Attempt: culvert.Attempt{Target: target}})
		}
		r.w.journal.passages = []*Passage{p}
		for _, target := range c.seen {
			r.sights = append(r.sights, &Sight{Target: target})
		}
		var got []string
		for _, s := range r.asSent() {
			got = append(got, s.Target)
		}
		if !slices.Equal(got, c.sorted) {
			t.Errorf("%s: %v, want %v", c.name, got, c.sorted)
		}
	}
}
