package upstream_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/upstream"
)

const client = "192.0.2.7:1234"

// The order is that of nginx's smooth weighted round robin.
func TestRoundRobin(t *testing.T) {
	tests := []struct {
		targets []upstream.Target
		want    string
	}{
		{addrs("a b c"), "a b c a b c a"},
		{[]upstream.Target{{Addr: "a:1", Weight: 5}, {Addr: "b:1"}, {Addr: "c:1"}}, "a a b a c a a"},
		{[]upstream.Target{{Addr: "a:1", Weight: 50}, {Addr: "b:1", Weight: 10}, {Addr: "c:1", Weight: 10}}, "a a b a c a a"},
		{[]upstream.Target{{Addr: "a:1"}, {Addr: "b:1", Down: true}, {Addr: "c:1"}}, "a c a c a c a"},
		{[]upstream.Target{{Addr: "a:1"}, {Addr: "b:1", Backup: true}}, "a a a a a a a"},
		{[]upstream.Target{{Addr: "a:1", Down: true}, {Addr: "b:1", Backup: true}, {Addr: "c:1", Backup: true}}, "b c b c b c b"},
		{[]upstream.Target{{Addr: "a:1", Down: true}}, "- - -"},
	}
	for _, test := range tests {
		newPicks(t, upstream.Options{}, test.targets...).want(test.want)
	}
}

// Weights that would make the period too long are rounded, and the shares are kept.
func TestManyWeights(t *testing.T) {
	var targets []upstream.Target
	total := 0
	for i := range 300 {
		w := 60000 + 17*i
		total += w
		targets = append(targets, upstream.Target{Addr: fmt.Sprintf("%d:1", i), Weight: w})
	}
	p := newPicks(t, upstream.Options{}, targets...)
	const n = 100000
	got := map[string]int{}
	for range n {
		l := p.lease()
		got[name(l)]++
		l.Done(upstream.Outcome{Status: 200})
	}
	for i, target := range targets {
		want := float64(n) * float64(target.Weight) / float64(total)
		if share := float64(got[fmt.Sprint(i)]); share < want*0.97-2 || share > want*1.03+2 {
			t.Errorf("target %d of weight %d got %v requests, want %v", i, target.Weight, share, want)
		}
	}
}

func TestFirst(t *testing.T) {
	p := newPicks(t, upstream.Options{Balance: upstream.First()}, addrs("a b c")...)
	p.want("a a a")
	p.broken["a"] = true
	p.want("a b b b") // the first request is retried on b
}

func TestLeastConn(t *testing.T) {
	p := newPicks(t, upstream.Options{Balance: upstream.LeastConn()}, addrs("a b c")...)
	p.want("a b c a b c") // with none in flight, targets take turns
	a, b := p.lease(), p.lease()
	p.want("c c c") // the only target with none in flight
	c, again := p.lease(), p.lease()
	if got := name(a) + name(b) + name(c) + name(again); got != "abca" {
		t.Errorf("leased %s", got)
	}
	b.Done(upstream.Outcome{Status: 200})
	p.want("b b")
	for _, l := range []upstream.Lease{a, c, again} {
		l.Done(upstream.Outcome{Status: 200})
	}
	p.want("c a b") // the target whose last turn was first is next
}

func TestLeastConnWeights(t *testing.T) {
	p := newPicks(t, upstream.Options{Balance: upstream.LeastConn()}, upstream.Target{Addr: "a:1", Weight: 3}, upstream.Target{Addr: "b:1"})
	got := map[string]int{}
	for range 40 {
		got[name(p.lease())]++
	}
	if got["a"] != 30 || got["b"] != 10 {
		t.Errorf("in flight %v, want 30 and 10", got)
	}
}

// Targets that are not available are removed from the heap, and added again when they are.
func TestLeastConnHealth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPicks(t, upstream.Options{Balance: upstream.LeastConn()}, addrs("a b c")...)
		p.broken["a"], p.broken["b"] = true, true
		p.want("a b c c c")
		p.broken["a"], p.broken["b"] = false, false
		p.want("c c")
		time.Sleep(10*time.Second + 1)
		if got := p.send(9); strings.Count(got, "a") != 3 || strings.Count(got, "b") != 3 {
			t.Errorf("requests were sent to %q after all have recovered", got)
		}
	})
}

// The heap is consistent under load.
func TestLeastConnUnderLoad(t *testing.T) {
	p := newPicks(t, upstream.Options{Balance: upstream.LeastConn()}, addrs("a b c d e")...)
	var clients sync.WaitGroup
	for range 8 {
		clients.Go(func() {
			for range 500 {
				held := []upstream.Lease{p.lease(), p.lease(), p.lease()}
				for _, l := range held {
					l.Done(upstream.Outcome{Status: 200})
				}
			}
		})
	}
	clients.Wait()
	for s := range p.g.Targets() {
		if s.InFlight != 0 {
			t.Errorf("%s has %d in flight", s.Target.Addr, s.InFlight)
		}
	}
	got := map[string]bool{}
	for range 5 {
		got[name(p.lease())] = true
	}
	if len(got) != 5 {
		t.Errorf("five requests went to %v", got)
	}
}

func TestRandomTwo(t *testing.T) {
	p := newPicks(t, upstream.Options{Balance: upstream.RandomTwo()}, upstream.Target{Addr: "a:1", Weight: 2}, upstream.Target{Addr: "b:1"}, upstream.Target{Addr: "c:1"})
	got := map[string]int{}
	for range 4000 {
		got[name(p.lease())]++ // all of them remain in flight
	}
	for host, want := range map[string]int{"a": 2000, "b": 1000, "c": 1000} {
		if n := got[host]; n < want-100 || n > want+100 {
			t.Errorf("%s has %d of 4000, want about %d", host, n, want)
		}
	}
	p.broken["a"], p.broken["b"] = true, true
	p.send(20)
	p.want("c c c c c")
}

// The targets are those that nginx 1.22 chose for these addresses, which it received
// by the PROXY protocol.
func TestIPHash(t *testing.T) {
	p := newPicks(t, upstream.Options{Balance: upstream.IPHash()},
		upstream.Target{Addr: "a:1"}, upstream.Target{Addr: "b:1", Weight: 2}, upstream.Target{Addr: "c:1"}, upstream.Target{Addr: "d:1", Down: true})
	for addr, want := range map[string]string{
		"192.0.2.7": "a", "192.0.3.7": "b", "10.0.0.1": "a", "10.1.2.3": "a", "10.1.2.200": "a", "172.16.5.9": "b",
		"203.0.113.50": "b", "198.51.100.1": "b", "8.8.8.8": "c", "127.0.0.1": "a",
		"[::1]": "a", "[2001:db8::1]": "a", "[2001:db8::2]": "b", "[fe80::1]": "c",
	} {
		p.want(want+" "+want+" "+want, from(addr+":1234"))
	}
}

// A client whose target fails gets another one, and its own again when that has recovered.
func TestIPHashFailover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPicks(t, upstream.Options{Balance: upstream.IPHash()}, addrs("a b c")...)
		home := p.send(1, from(client))
		p.broken[home] = true
		got := strings.Fields(p.send(1, from(client)))
		if len(got) != 2 || got[0] != home {
			t.Fatalf("requests were sent to %q, want %q and another", got, home)
		}
		p.want(got[1]+" "+got[1], from(client))
		time.Sleep(10*time.Second + time.Nanosecond)
		p.broken[home] = false
		p.want(home+" "+home, from(client))
	})
}

func byKey() upstream.Balance {
	return upstream.Hash(func(r *http.Request) string { return r.URL.Query().Get("k") })
}

func key(i int) func(*http.Request) {
	return func(r *http.Request) { r.URL.RawQuery = fmt.Sprintf("k=key-%d", i) }
}

// The targets are those that nginx 1.22 chose with "hash $arg_k consistent" and "hash $arg_k", for
// key-0 to key-39 and for four requests without a key.
func TestHashAsNginx(t *testing.T) {
	for want, balance := range map[string]upstream.Balance{
		"bccbbbaacacccbcbcbbacaccacabcbcbcabcabbc bacb": byKey(),
		"babbacbbbacccabcbbbcbbabcbbcabacabbabbbb bacb": upstream.HashModulo(func(r *http.Request) string { return r.URL.Query().Get("k") }),
	} {
		p := newPicks(t, upstream.Options{Balance: balance},
			upstream.Target{Addr: "127.0.0.1:19001"}, upstream.Target{Addr: "127.0.0.1:19002", Weight: 2},
			upstream.Target{Addr: "127.0.0.1:19003"}, upstream.Target{Addr: "127.0.0.1:19004", Down: true})
		letters := map[string]string{"127.0.0.1:19001": "a", "127.0.0.1:19002": "b", "127.0.0.1:19003": "c", "127.0.0.1:19004": "d"}
		got := ""
		send := func(change func(*http.Request)) {
			l, err := p.g.Pick(t.Context(), request(change))
			if err != nil {
				t.Fatal(err)
			}
			got += letters[l.Addr()]
			l.Done(upstream.Outcome{Status: 200})
		}
		for i := range 40 {
			send(key(i))
		}
		got += " "
		for range 4 {
			send(func(*http.Request) {})
		}
		if got != want {
			t.Errorf("chose %s\n want %s", got, want)
		}
	}
}

// A key function that panics leaves no request counted as in flight.
func TestHashKeyPanics(t *testing.T) {
	p := newPicks(t, upstream.Options{Balance: upstream.Hash(func(*http.Request) string { panic("boom") })}, addrs("a")...)
	func() {
		defer func() {
			if v := recover(); v != "boom" {
				t.Errorf("panic %v", v)
			}
		}()
		p.send(1)
	}()
	if err := p.g.Drain(t.Context()); err != nil {
		t.Error(err)
	}
	if n := p.g.InFlight(); n != 0 {
		t.Errorf("%d in flight", n)
	}
}

// When a target is removed, only its own keys move; when it is added again, they move back.
func TestHashIsStable(t *testing.T) {
	p := newPicks(t, upstream.Options{Balance: byKey()}, addrs("a b c d e")...)
	choices := func() (list []string) {
		for i := range 1000 {
			list = append(list, p.send(1, key(i)))
		}
		return list
	}
	before := choices()
	if err := p.g.Set(addrs("e d b a")...); err != nil {
		t.Fatal(err)
	}
	moved := 0
	for i, now := range choices() {
		if before[i] == "c" {
			moved++
		} else if now != before[i] {
			t.Fatalf("key-%d moved from %s to %s", i, before[i], now)
		}
	}
	if moved < 100 || moved > 300 {
		t.Errorf("%d of 1000 keys were c's", moved)
	}
	if err := p.g.Set(addrs("a b c d e")...); err != nil {
		t.Fatal(err)
	}
	for i, now := range choices() {
		if now != before[i] {
			t.Errorf("key-%d did not move back to %s", i, before[i])
		}
	}
}

// Pick and Done of a group of 1,000 targets.
func BenchmarkPick1000(b *testing.B) {
	for name, balance := range map[string]upstream.Balance{
		"round_robin": upstream.RoundRobin(), "least_conn": upstream.LeastConn(), "random_two": upstream.RandomTwo(),
		"first": upstream.First(), "func": upstream.BalanceFunc(leastInFlight), "hash": upstream.Hash(func(r *http.Request) string { return r.RemoteAddr }),
	} {
		b.Run(name, func(b *testing.B) {
			var targets []upstream.Target
			for i := range 1000 {
				targets = append(targets, upstream.Target{Addr: fmt.Sprintf("10.0.%d.%d:80", i/256, i%256), Weight: 1 + i%3})
			}
			g := newGroup(b, upstream.Options{Balance: balance}, targets...)
			r := request()
			ctx := b.Context()
			b.ReportAllocs()
			for b.Loop() {
				l, err := g.Pick(ctx, r)
				if err != nil {
					b.Fatal(err)
				}
				l.Done(upstream.Outcome{Status: 200})
			}
		})
	}
}
