package upstream_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/upstream"
)

// nginxPeer is a server of nginx's round robin.
type nginxPeer struct {
	name                       string
	weight, current, effective int
	maxFails, fails            int // maxFails 0: failures don't count
	checked, accessed          time.Time
	failTimeout                time.Duration
}

// nginxPeers picks as ngx_http_upstream_get_peer does, step by step.
type nginxPeers []*nginxPeer

func (peers nginxPeers) get(tried map[string]bool) *nginxPeer {
	var best *nginxPeer
	total := 0
	for _, p := range peers {
		if tried[p.name] || p.maxFails > 0 && p.fails >= p.maxFails && time.Since(p.checked) <= p.failTimeout {
			continue
		}
		p.current += p.effective
		total += p.effective
		if p.effective < p.weight {
			p.effective++
		}
		if best == nil || p.current > best.current {
			best = p
		}
	}
	if best == nil {
		return nil
	}
	best.current -= total
	if time.Since(best.checked) > best.failTimeout {
		best.checked = time.Now()
	}
	return best
}

// free is ngx_http_upstream_free_round_robin_peer.
func (p *nginxPeer) free(failed bool) {
	if !failed {
		if p.accessed.Before(p.checked) {
			p.fails = 0
		}
		return
	}
	p.fails++
	p.accessed, p.checked = time.Now(), time.Now()
	if p.maxFails > 0 {
		p.effective = max(0, p.effective-p.weight/p.maxFails)
	}
}

// Picks are nginx's, those of retries, after failures and of targets that come back included.
// An attempt that leads to another one need not be a failure (proxy_next_upstream http_404).
func TestTurnsAsNginx(t *testing.T) {
	random, seed := newRandom()
	for history := range 300 {
		synctest.Test(t, func(t *testing.T) {
			var peers nginxPeers
			var targets []upstream.Target
			pauses := history%2 == 0
			for i := range 2 + random.IntN(5) {
				maxFails := []int{0, 1}[random.IntN(2)]
				if !pauses {
					maxFails = random.IntN(4)
				}
				p := &nginxPeer{name: string(rune('a' + i)), weight: 1 + random.IntN(4), maxFails: maxFails, failTimeout: 10 * time.Second}
				p.effective = p.weight
				peers = append(peers, p)
				target := upstream.Target{Addr: p.name + ":1", Weight: p.weight, MaxFails: maxFails}
				if maxFails == 0 {
					target.MaxFails = -1
				}
				targets = append(targets, target)
			}
			g := newGroup(t, upstream.Options{}, targets...)
			var got, want string
			for range 60 {
				if pauses && random.IntN(10) == 0 {
					time.Sleep(10*time.Second + 1)
				}
				got, want = got+" ", want+" "
				var tried []upstream.Lease
				names := map[string]bool{}
				for again := true; again; {
					p := peers.get(names)
					l, err := g.Pick(t.Context(), request(), tried...)
					if p == nil || err != nil {
						if p != nil || err == nil {
							t.Fatalf("history %d of seed %d: a pick of%s gave %v, nginx's %v", history, seed, want, err, p)
						}
						break
					}
					got, want = got+name(l), want+p.name
					failed := random.IntN(8) == 0
					again = failed || random.IntN(4) == 0
					p.free(failed)
					names[p.name] = true
					if failed {
						l.Done(upstream.Outcome{Err: errors.New("broken")})
					} else {
						l.Done(upstream.Outcome{Status: 404})
					}
					tried = append(tried, l)
				}
			}
			if got != want {
				t.Errorf("history %d of seed %d, %+v:\n  got%s\nnginx%s", history, seed, targets, got, want)
			}
		})
		if t.Failed() {
			return
		}
	}
}

// A retry of what its target dropped takes no turn from the next request
// (two targets: as many first attempts each, whichever of them drops).
func TestRetriesTakeNoTurn(t *testing.T) {
	for _, n := range []int{2, 3, 10} {
		var list []upstream.Target
		for i := range n {
			list = append(list, upstream.Target{Addr: fmt.Sprintf("%c:1", 'a'+i)})
		}
		p := over(t, upstream.Options{}, list...)
		first, asked := map[string]int{}, map[string]int{}
		for range 100 * n {
			l := p.lease()
			first[name(l)]++
			asked[name(l)]++
			l.Done(upstream.Outcome{Status: 404})
			if name(l) == "a" {
				again := p.lease(l)
				asked[name(again)]++
				again.Done(upstream.Outcome{Status: 200})
			}
		}
		for _, target := range list {
			host := target.Addr[:1]
			if n == 2 && first[host] != 100 {
				t.Errorf("of %d targets %s got %d first attempts of %d", n, host, first[host], 100*n)
			}
			// The others share a's retries evenly.
			if most := asked["b"] + 2; host != "a" && (asked[host] > most || asked[host] < most-4) {
				t.Errorf("of %d targets %s got %d attempts, b %d", n, host, asked[host], asked["b"])
			}
		}
	}
}

// Turns go on where the number of targets passes that up to which each pick looks at all of them.
func TestTurnsOfManyAndFew(t *testing.T) {
	var names string
	for i := range 65 {
		names += fmt.Sprintf("%d ", i)
	}
	many := addrs(names)
	few := many[:64]
	p := over(t, upstream.Options{}, many...)
	p.want("0 1 2")
	for i, list := range [][]upstream.Target{few, many, many, few, few, many} {
		if err := p.g.Set(list...); err != nil {
			t.Fatal(err)
		}
		p.want(fmt.Sprint(3 + i))
	}
	for _, list := range [][]upstream.Target{many, few} {
		down := append([]upstream.Target{}, list...)
		for i := range down {
			down[i].Down = true
		}
		if err := p.g.Set(down...); err != nil {
			t.Fatal(err)
		}
		p.want("-")
	}
}

// Pick of a group of the usual size, alone and under contention.
func BenchmarkPick3(b *testing.B) {
	b.Run("alone", func(b *testing.B) {
		g, r := newGroup(b, upstream.Options{}, addrs("a b c")...), request()
		b.ReportAllocs()
		for b.Loop() {
			l, _ := g.Pick(b.Context(), r)
			l.Done(upstream.Outcome{Status: 200})
		}
	})
	b.Run("parallel", func(b *testing.B) {
		g := newGroup(b, upstream.Options{}, addrs("a b c")...)
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for r := request(); pb.Next(); {
				l, _ := g.Pick(b.Context(), r)
				l.Done(upstream.Outcome{Status: 200})
			}
		})
	})
}
