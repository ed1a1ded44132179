package leasttime_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/nginx/internal/engine/leasttime"
	"github.com/culvert-go/culvert/upstream"
)

func two(inFlightA, inFlightB int) []upstream.Candidate {
	return []upstream.Candidate{{Addr: "a", Weight: 1, InFlight: inFlightA}, {Addr: "b", Weight: 1, InFlight: inFlightB}}
}

// run sends n requests one after the other, and returns the servers that have got them.
func run(p *leasttime.Peers, n int, took map[string]time.Duration) (got string) {
	for range n {
		list := two(0, 0)
		addr := list[p.Choose(nil, list)].Addr
		end := p.Begin(addr)
		time.Sleep(max(took[addr], 0))
		end(took[addr])
		got += addr
	}
	return got
}

// The faster server is chosen. The slower one gets a request again when it has had none for some times its fail_timeout.
func TestFaster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &leasttime.Peers{FailTimeout: func(string) time.Duration { return 10 * time.Second }}
		took := map[string]time.Duration{"a": 500 * time.Millisecond, "b": 10 * time.Millisecond}
		if got := run(p, 6, took); got != "abbbbb" {
			t.Error(got)
		}
		time.Sleep(40 * time.Second)
		run(p, 1, took) // b is still faster, at an eighth of a's time
		time.Sleep(40 * time.Second)
		if got := run(p, 4, took); got != "babb" && got != "abbb" {
			t.Error(got)
		}
	})
}

// Servers whose times hardly differ take turns, by weight. Those with more requests in flight are slower.
func TestEqual(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &leasttime.Peers{}
		if got := run(p, 6, map[string]time.Duration{"a": 2 * time.Millisecond, "b": 11 * time.Millisecond}); got != "ababab" {
			t.Error(got)
		}
		if list := two(2, 0); list[p.Choose(nil, list)].Addr != "b" {
			t.Error("the server with two requests is chosen")
		}
	})
}

// Failures do not make a server fast.
func TestFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &leasttime.Peers{FailTimeout: func(string) time.Duration { return time.Hour }}
		run(p, 2, map[string]time.Duration{"a": 500 * time.Millisecond, "b": 100 * time.Millisecond})
		p.Begin("a")(-1)
		if got := run(p, 2, map[string]time.Duration{"b": 100 * time.Millisecond}); got != "bb" {
			t.Error(got)
		}
	})
}

// With inflight, a request that does not end makes its server slow.
func TestInflight(t *testing.T) {
	for _, inflight := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			p := &leasttime.Peers{Inflight: inflight, FailTimeout: func(string) time.Duration { return time.Hour }}
			run(p, 2, map[string]time.Duration{"a": 30 * time.Millisecond, "b": 50 * time.Millisecond})
			end := p.Begin("a")
			time.Sleep(3 * time.Second)
			want := map[bool]string{false: "a", true: "b"}[inflight]
			if list := two(0, 0); list[p.Choose(nil, list)].Addr != want {
				t.Errorf("inflight %t: not %s", inflight, want)
			}
			end(-1)
			if list := two(0, 0); list[p.Choose(nil, list)].Addr != "a" {
				t.Errorf("inflight %t: not a", inflight)
			}
		})
	}
}
