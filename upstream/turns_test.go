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

// free does what ngx_http_upstream_free_round_robin_peer does.
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

// Picks are the same as nginx's, including retries, picks after failures and picks of targets that
// have recovered. An attempt that is retried need not be a failure (proxy_next_upstream http_404).
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
			g := newGroup(t, upstream.Options{MaxEjected: 1}, targets...)
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

// A retry takes no turn from the next request: with two targets each gets as many
// first attempts as the other, though all of one target's are retried.
func TestRetriesTakeNoTurn(t *testing.T) {
	for _, n := range []int{2, 3, 10} {
		var list []upstream.Target
		for i := range n {
			list = append(list, upstream.Target{Addr: fmt.Sprintf("%c:1", 'a'+i)})
		}
		p := newPicks(t, upstream.Options{}, list...)
		first, attempts := map[string]int{}, map[string]int{}
		for range 100 * n {
			l := p.lease()
			first[name(l)]++
			attempts[name(l)]++
			l.Done(upstream.Outcome{Status: 404})
			if name(l) == "a" {
				again := p.lease(l)
				attempts[name(again)]++
				again.Done(upstream.Outcome{Status: 200})
			}
		}
		for _, target := range list {
			host := target.Addr[:1]
			if n == 2 && first[host] != 100 {
				t.Errorf("of %d targets %s got %d first attempts of %d", n, host, first[host], 100*n)
			}
			// The others share a's retries evenly.
			if most := attempts["b"] + 2; host != "a" && (attempts[host] > most || attempts[host] < most-4) {
				t.Errorf("of %d targets %s got %d attempts, b %d", n, host, attempts[host], attempts["b"])
			}
		}
	}
}

// Turns continue when the number of targets passes the maximum of exactRoundRobin, in either direction.
func TestTurnsOfManyAndFew(t *testing.T) {
	var names string
	for i := range 65 {
		names += fmt.Sprintf("%d ", i)
	}
	many := addrs(names)
	few := many[:64]
	p := newPicks(t, upstream.Options{}, many...)
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

// Pick and Done of a group of the usual size, without and with contention.
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
