package upstream_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/upstream"
)

// Below the threshold all targets get requests, and the health of each is followed as otherwise.
func TestPanicThreshold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPicks(t, upstream.Options{PanicThreshold: 0.5}, addrs("a b c d")...)
		p.broken["a"], p.broken["b"] = true, true
		p.want("a b c d c d c d") // two of four: not below
		p.broken["c"] = true
		p.want("c d")
		if got := p.ejected(); got != "a b c" {
			t.Fatalf("%s are out", got)
		}
		clear(p.broken)
		got := p.send(40)
		for _, target := range []string{"a", "b", "c", "d"} {
			if n := strings.Count(got, target); n < 9 || n > 11 {
				t.Errorf("requests were sent to %s", got)
			}
		}
		if got := p.ejected(); got != "a b c" {
			t.Errorf("%s are out, want those of before: their time is not over", got)
		}
		time.Sleep(10*time.Second + 1)
		p.send(8)
		if got := p.ejected(); got != "" {
			t.Errorf("%s are out, though requests have succeeded", got)
		}
	})
}

// Failed checks do not count either below the threshold, and a Down target gets nothing.
func TestPanicThresholdOfChecks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		probes := &probed{status: map[string]int{"a": 200, "b": 200}}
		p := newPicks(t, upstream.Options{PanicThreshold: 0.3, Transport: probes, Check: &upstream.Check{Path: "/", Jitter: -1, Fall: 1, Rise: 1}},
			upstream.Target{Addr: "a:1"}, upstream.Target{Addr: "b:1"}, upstream.Target{Addr: "c:1", Down: true})
		for _, step := range []struct {
			a, b int
			want string
		}{{200, 200, "a b a"}, {500, 200, "b b b"}, {500, 500, "a b a"}, {500, 200, "b b b"}, {200, 200, "a b"}} {
			probes.set("a", step.a)
			probes.set("b", step.b)
			time.Sleep(5 * time.Second)
			synctest.Wait()
			got := strings.Fields(p.send(3))
			if want := strings.Fields(step.want); fmt.Sprint(slices.Compact(slices.Sorted(slices.Values(got)))) != fmt.Sprint(slices.Compact(slices.Sorted(slices.Values(want)))) {
				t.Errorf("checks of %d and %d: requests were sent to %v, want %v", step.a, step.b, got, want)
			}
		}
	})
}

// A request that waits is served when the threshold is crossed.
func TestPanicThresholdServesTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPicks(t, upstream.Options{PanicThreshold: 0.6, Queue: 1, Balance: upstream.First()},
			upstream.Target{Addr: "a:1"}, upstream.Target{Addr: "b:1", MaxConns: 1}, upstream.Target{Addr: "c:1", MaxConns: 1})
		p.broken["a"] = true
		p.want("a b")
		b, c := p.lease(), p.lease()
		var got upstream.Lease
		go func() { got = p.lease() }()
		synctest.Wait()
		if p.g.Waiting() != 1 {
			t.Fatalf("%d wait, %s and %s are busy", p.g.Waiting(), name(b), name(c))
		}
		b.Done(outcomes['f']) // b is out: one of three is available
		synctest.Wait()
		if name(got) != "a" {
			t.Errorf("the request that waited got %s", name(got))
		}
		got.Done(outcomes['s'])
		c.Done(outcomes['s'])
	})
}

// The targets that may be picked are those that Options.PanicThreshold names, over random histories.
func TestPanicThresholdModel(t *testing.T) {
	random, seed := newRandom()
	for range 150 {
		synctest.Test(t, func(t *testing.T) {
			threshold := []float64{0.1, 0.3, 0.5, 0.7, 1}[random.IntN(5)]
			var offered []string
			balance := upstream.BalanceFunc(func(_ *http.Request, available []upstream.Candidate) int {
				offered = nil
				for _, c := range available {
					offered = append(offered, c.Addr)
				}
				return random.IntN(len(available))
			})
			probes := &probed{status: map[string]int{}}
			set := func() (list []upstream.Target) {
				for _, target := range randomTargets(random) {
					target.Backup = false
					list = append(list, target)
				}
				return list
			}
			g := newGroup(t, upstream.Options{PanicThreshold: threshold, MaxEjected: []float64{0, 0.5, 1}[random.IntN(3)], Transport: probes, Balance: balance,
				Check: &upstream.Check{Path: "/", Fall: 1, Rise: 1, Interval: 3 * time.Second}}, set()...)
			for step := range 150 {
				switch n := random.IntN(20); {
				case n == 0:
					if err := g.Set(set()...); err != nil {
						t.Fatal(err)
					}
				case n < 3:
					probes.set(string(rune('a'+random.IntN(8))), []int{0, 200, 200}[random.IntN(3)])
				case n < 6:
					time.Sleep(time.Duration(random.IntN(5)) * time.Second)
					synctest.Wait()
				default:
					offered = nil
					want := mayGet(g, threshold)
					if l, err := g.Pick(t.Context(), request()); err == nil {
						l.Done(outcomes["ffs"[random.IntN(3)]])
					}
					if fmt.Sprint(offered) != fmt.Sprint(want) {
						t.Fatalf("seed %d, step %d: a request could get %v, want %v (threshold %v)", seed, step, offered, want, threshold)
					}
				}
			}
		})
	}
}

// mayGet returns the addresses of the targets to which a request may be sent.
func mayGet(g *upstream.Group, threshold float64) []string {
	var all, healthy []string
	left := 0
	for s := range g.Targets() {
		if s.Target.Down {
			continue
		}
		all = append(all, s.Target.Addr)
		if s.Healthy {
			healthy = append(healthy, s.Target.Addr)
		}
		if !s.Ejected && !s.Unhealthy {
			left++
		}
	}
	if float64(left) < threshold*float64(len(all))-1e-9 {
		return all
	}
	return healthy
}

// After changes on several goroutines health counts if enough targets are available.
func TestPanicThresholdUnderLoad(t *testing.T) {
	var mu sync.Mutex
	var offered int
	p := newPicks(t, upstream.Options{PanicThreshold: 0.6, Balance: upstream.BalanceFunc(func(r *http.Request, available []upstream.Candidate) int {
		mu.Lock()
		defer mu.Unlock()
		offered = len(available)
		return int(r.ContentLength) % len(available)
	})}, addrs("a b c d e f")...)
	for round := range 20 {
		var clients sync.WaitGroup
		for i := range 6 {
			clients.Go(func() {
				for range 50 {
					l, err := p.g.Pick(t.Context(), request(func(r *http.Request) { r.ContentLength = int64(i) }))
					if err != nil {
						t.Error(err)
						return
					}
					l.Done(outcomes["fs"[(i+round)%2]])
				}
			})
		}
		clients.Go(func() {
			for i := range 10 {
				if err := p.g.Set(addrs([]string{"a b c d e f", "a b c d"}[i%2])...); err != nil {
					t.Error(err)
				}
			}
			if err := p.g.Set(addrs("a b c d e f")...); err != nil {
				t.Error(err)
			}
		})
		clients.Wait()
		want := len(mayGet(p.g, 0.6))
		p.lease().Done(outcomes['s'])
		if offered != want {
			t.Fatalf("round %d: a request could get %d targets, want %d", round, offered, want)
		}
	}
}
