package upstream_test

import (
	"net/http"
	"testing"

	"github.com/culvert-go/culvert/upstream"
)

// Turns continue when the targets change: even if sets change often, the first targets get no more
// than their share.
func TestTurnsOutliveTheSet(t *testing.T) {
	for name, balance := range map[string]upstream.Balance{
		"RoundRobin": upstream.RoundRobin(), "LeastConn": upstream.LeastConn(), "Hash": byKey(),
		"HashModulo": upstream.HashModulo(func(*http.Request) string { return "" }), "Sticky": upstream.Sticky(upstream.StickyOptions{}),
	} {
		t.Run(name, func(t *testing.T) {
			p := newPicks(t, upstream.Options{Balance: balance}, addrs("a b c")...)
			for _, step := range []struct{ list, want string }{
				{"a b c", "a b"}, {"a b c", "c"}, {"a b c", "a"}, {"a b c", "b c a b"},
				{"c a b", "c"}, {"a b c", "a"}, // the target whose turn it is, at any place in the list
				{"a c", "c"}, {"a c", "a c"}, // the next one if that was removed
			} {
				if err := p.g.Set(addrs(step.list)...); err != nil {
					t.Fatal(err)
				}
				p.want(step.want)
			}
		})
	}
}

// Weighted targets keep their shares, too, even with a new set before each request.
func TestSharesOverSets(t *testing.T) {
	for name, balance := range map[string]upstream.Balance{"RoundRobin": upstream.RoundRobin(), "LeastConn": upstream.LeastConn()} {
		t.Run(name, func(t *testing.T) {
			targets := []upstream.Target{{Addr: "a:1", Weight: 1}, {Addr: "b:1", Weight: 1}, {Addr: "c:1", Weight: 1}}
			if name == "RoundRobin" {
				targets[0].Weight = 5
			}
			p := newPicks(t, upstream.Options{Balance: balance}, targets...)
			got := map[string]int{}
			for range 70 {
				if err := p.g.Set(targets...); err != nil {
					t.Fatal(err)
				}
				got[p.send(1)]++
			}
			for i, name := range []string{"a", "b", "c"} {
				want := 70 * targets[i].Weight / (targets[0].Weight + 2)
				if n := got[name]; n < want || n > want+1 {
					t.Errorf("%s got %d of 70, want %d", name, n, want)
				}
			}
		})
	}
}

// A new target gets its turn, and a set of new targets begins with the first one.
func TestTurnsOfNewTargets(t *testing.T) {
	p := newPicks(t, upstream.Options{}, addrs("a b")...)
	p.want("a")
	if err := p.g.Set(addrs("a x b")...); err != nil {
		t.Fatal(err)
	}
	p.want("b a x b")
	if err := p.g.Set(addrs("y z")...); err != nil {
		t.Fatal(err)
	}
	p.want("y z y")
}

// A target that was removed from the set and added again still counts as tried.
func TestTriedTargetComesBack(t *testing.T) {
	p := newPicks(t, upstream.Options{}, addrs("a b")...)
	tried, err := p.g.Pick(t.Context(), request())
	if err != nil {
		t.Fatal(err)
	}
	tried.Done(upstream.Outcome{Status: 200})
	for _, list := range []string{"b", "a b"} {
		if err := p.g.Set(addrs(list)...); err != nil {
			t.Fatal(err)
		}
	}
	for range 4 {
		another, err := p.g.Pick(t.Context(), request(), tried)
		if err != nil || another.Addr() == tried.Addr() {
			t.Fatalf("picked %v again, error %v", tried.Addr(), err)
		}
		another.Done(upstream.Outcome{Status: 200})
	}
}
