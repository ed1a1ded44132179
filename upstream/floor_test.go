package upstream_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/upstream"
)

// ejected returns the names of the targets that failures have taken out.
func (p *picks) ejected() string {
	var out []string
	for s := range p.g.Targets() {
		if s.Ejected {
			out = append(out, strings.TrimSuffix(s.Target.Addr, ":1"))
		}
	}
	return strings.Join(out, " ")
}

// The last target that is available is not taken out, and is when another one is back.
func TestLastTargetIsNotTakenOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPicks(t, upstream.Options{}, addrs("a b")...)
		p.broken["a"], p.broken["b"] = true, true
		p.want("a b b b b")
		p.broken["a"] = false
		time.Sleep(10*time.Second + 1)
		p.want("b a b a a a") // b's next failure, in its turn, takes it out
		if got := p.ejected(); got != "b" {
			t.Errorf("%s are out, want b", got)
		}
	})
}

// A target is available if it is neither Down, nor unhealthy, nor out. A backup counts.
func TestLastOfSomeKind(t *testing.T) {
	for name, list := range map[string][]upstream.Target{
		"down":     {{Addr: "a:1"}, {Addr: "b:1", Down: true}},
		"single":   {{Addr: "a:1"}},
		"twice":    {{Addr: "a:1"}, {Addr: "a:1"}},
		"MaxFails": {{Addr: "a:1", MaxFails: 3}, {Addr: "b:1", Down: true}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPicks(t, upstream.Options{}, list...)
			p.broken["a"] = true
			p.want("a a a a a")
		})
	}
	t.Run("backup", func(t *testing.T) {
		p := newPicks(t, upstream.Options{}, upstream.Target{Addr: "a:1"}, upstream.Target{Addr: "b:1", Backup: true})
		p.broken["a"], p.broken["b"] = true, true
		p.want("a b b b")
	})
}

// At most the share MaxEjected is out, but one target may be.
func TestMaxEjected(t *testing.T) {
	for _, test := range []struct {
		share   float64
		targets string
		want    int
	}{
		{0, "a b c d", 3}, {0.5, "a b c d", 2}, {0.1, "a b c d", 1}, {0.7, "a b c d e f g h i j", 7}, {0.29, "a b c", 1},
		{0.99, "a b", 1}, {1, "a b", 2}, {0.1, "a b", 1}, {1, "a", 0},
	} {
		p := newPicks(t, upstream.Options{MaxEjected: test.share}, addrs(test.targets)...)
		for _, target := range strings.Fields(test.targets) {
			p.broken[target] = true
		}
		p.send(30)
		if got := len(strings.Fields(p.ejected())); got != test.want {
			t.Errorf("share %v of %s: %d are out, want %d", test.share, test.targets, got, test.want)
		}
	}
	var many []upstream.Target
	for i := range 100 {
		many = append(many, upstream.Target{Addr: fmt.Sprintf("t%d:1", i)})
	}
	p := newPicks(t, upstream.Options{MaxEjected: 0.29}, many...)
	for range 300 {
		p.lease().Done(upstream.Outcome{Err: errors.New("broken")})
	}
	if got := len(strings.Fields(p.ejected())); got != 29 {
		t.Errorf("%d of 100 are out, want 29", got)
	}
}

// Set brings back the targets whose failures are the oldest if fewer may be out in the new set.
func TestSetKeepsTheFloor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPicks(t, upstream.Options{MaxEjected: 0.5, Balance: upstream.First()}, addrs("a b c d e f")...)
		p.broken["a"], p.broken["b"], p.broken["c"] = true, true, true
		for range 3 {
			p.lease().Done(upstream.Outcome{Err: errors.New("broken")})
			time.Sleep(time.Second)
		}
		for _, step := range [][2]string{{"a b c d e f", "a b c"}, {"a b c d", "b c"}, {"b c d", "c"}, {"b c d e f g", "c"}, {"c", ""}, {"c d", "c"}} {
			if err := p.g.Set(addrs(step[0])...); err != nil {
				t.Fatal(err)
			}
			if got := p.ejected(); got != step[1] {
				t.Errorf("of %s %q are out, want %q", step[0], got, step[1])
			}
		}
	})
}

// If checks leave no target, those that failures have taken out get requests, unless their checks have failed, too.
func TestChecksKeepTheFloor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		probes := &probed{status: map[string]int{"a": 200, "b": 200, "c": 500}}
		p := newPicks(t, upstream.Options{Transport: probes, Check: &upstream.Check{Path: "/", Jitter: -1, Fall: 1, Interval: time.Second}},
			upstream.Target{Addr: "a:1", FailTimeout: time.Hour}, upstream.Target{Addr: "b:1", FailTimeout: time.Hour}, upstream.Target{Addr: "c:1"})
		step := func(want string) {
			t.Helper()
			time.Sleep(time.Second)
			synctest.Wait()
			p.want(want)
		}
		p.broken["a"] = true
		step("a b b b") // c is unhealthy
		p.broken["a"] = false
		probes.set("b", 500)
		step("a a a")
		probes.set("a", 500)
		step("- - -")
	})
}

// floorBroken returns how the group breaks the rules of MaxEjected, "" if it does not.
func floorBroken(g *upstream.Group, share float64) string {
	all, out, left := 0, 0, 0
	waiting := 0 // out, though their checks are good
	for s := range g.Targets() {
		switch {
		case s.Target.Down:
			continue
		case s.Ejected:
			out++
			if !s.Unhealthy {
				waiting++
			}
		case !s.Unhealthy:
			left++
		}
		all++
	}
	switch {
	case left == 0 && waiting > 0:
		return fmt.Sprintf("all of %d targets are out", all)
	case share > 0 && waiting > 0 && out > max(1, int(share*float64(all)+1e-9)):
		return fmt.Sprintf("%d of %d are out, the share is %v", out, all, share)
	}
	return ""
}

// No history of failures, checks and sets takes out more than MaxEjected allows, or the last target.
func TestFloorModel(t *testing.T) {
	random, seed := newRandom()
	for range 150 {
		synctest.Test(t, func(t *testing.T) {
			share := []float64{0, 0.1, 0.3, 0.5, 0.8}[random.IntN(5)]
			probes := &probed{status: map[string]int{}}
			list := randomTargets(random)
			g := newGroup(t, upstream.Options{MaxEjected: share, Transport: probes,
				Check: &upstream.Check{Path: "/", Fall: 1, Rise: 1, Interval: 3 * time.Second}}, list...)
			check := func(step int, what string) {
				t.Helper()
				if broken := floorBroken(g, share); broken != "" {
					t.Fatalf("seed %d, step %d: behind %s %s", seed, step, what, broken)
				}
			}
			for step := range 150 {
				switch n := random.IntN(20); {
				case n == 0:
					if err := g.Set(randomTargets(random)...); err != nil {
						t.Fatal(err)
					}
					check(step, "Set")
				case n < 3:
					probes.set(string(rune('a'+random.IntN(8))), []int{0, 200, 200}[random.IntN(3)])
				case n < 6:
					time.Sleep(time.Duration(random.IntN(5)) * time.Second)
					synctest.Wait()
					check(step, "a check")
				default:
					if l, err := g.Pick(t.Context(), request()); err == nil {
						l.Done(outcomes["ffs"[random.IntN(3)]])
					}
					check(step, "a request")
				}
			}
		})
	}
}

// randomTargets returns targets of which at least one is neither Down nor a backup.
func randomTargets(random *rand.Rand) (list []upstream.Target) {
	for i := range 8 {
		if random.IntN(2) == 0 {
			list = append(list, upstream.Target{Addr: string(rune('a'+i)) + ":1", MaxFails: 1 + random.IntN(3),
				Down: random.IntN(6) == 0, Backup: random.IntN(6) == 0})
		}
	}
	list = append(list, upstream.Target{Addr: "z:1", MaxFails: random.IntN(3)})
	random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}

// Requests that fail all at once, beside changes of the set, leave a target for each further one.
func TestFloorUnderLoad(t *testing.T) {
	p := newPicks(t, upstream.Options{}, addrs("a b c d")...)
	var clients sync.WaitGroup
	for i := range 8 {
		clients.Go(func() {
			for n := range 2000 {
				if l, err := p.g.Pick(t.Context(), request()); err != nil {
					t.Errorf("a request gets no target: %v", err)
				} else {
					l.Done(outcomes["ffs"[n%3]])
				}
				if i == 0 && n%10 == 0 {
					if err := p.g.Set(addrs([]string{"a b c d", "c d e", "a e"}[n/10%3])...); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	clients.Wait()
	if list := slices.Collect(p.g.Targets()); len(strings.Fields(p.ejected())) >= len(list) {
		t.Errorf("all are out: %v", list)
	}
}
