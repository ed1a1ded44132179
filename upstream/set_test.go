package upstream_test

import (
	"net/http"
	"testing"

	"github.com/culvert-go/culvert/upstream"
)

// Turns go on when the targets change: where sets come often, the first targets get no more than
// their share.
func TestTurnsOutliveTheSet(t *testing.T) {
	for name, balance := range map[string]upstream.Balance{
		"RoundRobin": upstream.RoundRobin(), "LeastConn": upstream.LeastConn(), "Hash": byKey(),
		"HashModulo": upstream.HashModulo(func(*http.Request) string { return "" }), "Sticky": upstream.Sticky(upstream.StickyOptions{}),
	} {
		t.Run(name, func(t *testing.T) {
			p := over(t, upstream.Options{Balance: balance}, addrs("a b c")...)
			for _, step := range []struct{ list, want string }{
				{"a b c", "a b"}, {"a b c", "c"}, {"a b c", "a"}, {"a b c", "b c a b"},
				{"c a b", "c"}, {"a b c", "a"}, // whose turn it is, wherever it stands
				{"a c", "c"}, {"a c", "a c"}, // the next one where that has gone
			} {
				if err := p.g.Set(addrs(step.list)...); err != nil {
					t.Fatal(err)
				}
				p.want(step.want)
			}
		})
	}
}

// Weights keep their shares, too, with a new set before each request.
func TestSharesOverSets(t *testing.T) {
	for name, balance := range map[string]upstream.Balance{"RoundRobin": upstream.RoundRobin(), "LeastConn": upstream.LeastConn()} {
		t.Run(name, func(t *testing.T) {
			targets := []upstream.Target{{Addr: "a:1", Weight: 1}, {Addr: "b:1", Weight: 1}, {Addr: "c:1", Weight: 1}}
			if name == "RoundRobin" {
				targets[0].Weight = 5
			}
			p := over(t, upstream.Options{Balance: balance}, targets...)
			got := map[string]int{}
			for range 70 {
				if err := p.g.Set(targets...); err != nil {
					t.Fatal(err)
				}
				got[p.ask(1)]++
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

// A target that is new gets its turn, and a set of others begins at its first one.
func TestTurnsOfNewTargets(t *testing.T) {
	p := over(t, upstream.Options{}, addrs("a b")...)
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

// A target that has left the set and come back was tried all the same.
func TestTriedTargetComesBack(t *testing.T) {
	p := over(t, upstream.Options{}, addrs("a b")...)
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
