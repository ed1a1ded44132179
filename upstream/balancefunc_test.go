package upstream_test

import (
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/errs"
	"github.com/culvert-go/culvert/upstream"
)

// leastInFlight is a BalanceFunc.
func leastInFlight(_ *http.Request, available []upstream.Candidate) int {
	best := 0
	for i, c := range available {
		if c.InFlight < available[best].InFlight {
			best = i
		}
	}
	return best
}

// A BalanceFunc sees the targets that can get the request, and no others.
func TestBalanceFuncSeesAvailableTargets(t *testing.T) {
	var seen []string
	choose := func(r *http.Request, available []upstream.Candidate) int {
		var list []string
		for _, c := range available {
			list = append(list, fmt.Sprintf("%s*%d:%d", strings.TrimSuffix(c.Addr, ":1"), c.Weight, c.InFlight))
		}
		clear(available) // which is allowed
		seen = append(seen, r.URL.Path+" "+strings.Join(list, " "))
		return len(available) - 1
	}
	p := newPicks(t, upstream.Options{Balance: upstream.BalanceFunc(choose)},
		upstream.Target{Addr: "a:1", Weight: 3}, upstream.Target{Addr: "b:1", Down: true}, upstream.Target{Addr: "c:1", MaxConns: 1},
		upstream.Target{Addr: "d:1", Backup: true})
	c := p.lease()
	a := p.lease()
	d := p.lease(c, a)
	a.Done(outcomes['f'])
	second := p.lease() // a is out
	for _, l := range []upstream.Lease{c, d, second} {
		l.Done(outcomes['s'])
	}
	want := "/ a*3:0 c*1:0; / a*3:0; / d*1:0; / d*1:1"
	if got := strings.Join(seen, "; "); got != want {
		t.Errorf("it saw %s, want %s", got, want)
	}
	if name(c) != "c" || name(a) != "a" || name(d) != "d" || name(second) != "d" {
		t.Errorf("picked %s %s %s %s", name(c), name(a), name(d), name(second))
	}
}

// A request that a BalanceFunc gives no target holds nothing, regardless of what the function does.
func TestBadBalanceFunc(t *testing.T) {
	for name, choose := range map[string]upstream.BalanceFunc{
		"-1":    func(*http.Request, []upstream.Candidate) int { return -1 },
		"1":     func(_ *http.Request, available []upstream.Candidate) int { return len(available) },
		"large": func(*http.Request, []upstream.Candidate) int { return math.MaxInt },
		"panic": func(*http.Request, []upstream.Candidate) int { panic("boom") },
	} {
		for _, queue := range []int{0, 1} {
			t.Run(fmt.Sprintf("%s, queue of %d", name, queue), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p := newPicks(t, upstream.Options{Balance: choose, Queue: queue}, upstream.Target{Addr: "a:1", MaxConns: 1})
					result := make(chan any, 1)
					go func() {
						defer func() {
							if v := recover(); v != nil {
								result <- v
							}
						}()
						_, err := p.g.Pick(t.Context(), request())
						result <- err
					}()
					switch v := (<-result).(type) {
					case error:
						if e := errs.As(v); e == nil || e.Kind != culvert.Busy || name == "panic" {
							t.Errorf("error %v", v)
						}
					default:
						if v != "boom" || name != "panic" {
							t.Errorf("%v", v)
						}
					}
					if err := p.g.Drain(t.Context()); err != nil || p.g.InFlight() != 0 || p.g.Waiting() != 0 {
						t.Errorf("%v, %d in flight, %d wait", err, p.g.InFlight(), p.g.Waiting())
					}
				})
			})
		}
	}
	if _, err := upstream.New(upstream.Options{Balance: upstream.BalanceFunc(nil)}, upstream.Target{Addr: "a:1"}); err == nil || !strings.HasSuffix(err.Error(), "the BalanceFunc is nil") {
		t.Errorf("nil: %v", err)
	}
}

// A BalanceFunc that blocks for one request holds no other one up, as long as none waits in the queue.
func TestBlockingBalanceFunc(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		block := make(chan struct{})
		choose := func(r *http.Request, available []upstream.Candidate) int {
			if r.URL.Path == "/blocked" {
				<-block
			}
			return leastInFlight(r, available)
		}
		p := newPicks(t, upstream.Options{Balance: upstream.BalanceFunc(choose), Queue: 4}, addrs("a b")...)
		blocked := make(chan picked, 1)
		go func() {
			l, err := p.g.Pick(t.Context(), request(func(r *http.Request) { r.URL.Path = "/blocked" }))
			blocked <- picked{l, err}
		}()
		synctest.Wait()
		start := time.Now()
		for range 4 {
			l := p.lease()
			l.Done(outcomes['s'])
		}
		if err := p.g.Set(addrs("a b c")...); err != nil || time.Since(start) > 0 {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		close(block)
		if got := <-blocked; got.err != nil {
			t.Error(got.err)
		} else {
			got.lease.Done(outcomes['s'])
		}
	})
}

// A target that has become full while the BalanceFunc ran is not selected: it is called again.
func TestBalanceFuncBesideAnotherRequest(t *testing.T) {
	var p *picks
	var taken []upstream.Lease
	calls := 0
	choose := func(_ *http.Request, available []upstream.Candidate) int {
		if calls++; calls == 1 {
			taken = append(taken, p.lease(), p.lease()) // which fills a and b
		}
		return 0
	}
	p = newPicks(t, upstream.Options{Balance: upstream.BalanceFunc(choose)}, upstream.Target{Addr: "a:1", MaxConns: 1}, upstream.Target{Addr: "b:1", MaxConns: 1}, upstream.Target{Addr: "c:1", MaxConns: 1})
	l := p.lease()
	if name(l) != "c" || name(taken[0]) != "a" || name(taken[1]) != "b" {
		t.Errorf("picked %s beside %s and %s", name(l), name(taken[0]), name(taken[1]))
	}
}

// Sticky may have a BalanceFunc for new clients.
func TestStickyWithABalanceFunc(t *testing.T) {
	p := newPicks(t, upstream.Options{Balance: upstream.Sticky(upstream.StickyOptions{Otherwise: upstream.BalanceFunc(leastInFlight)})}, addrs("a b")...)
	first, second := p.lease(), p.lease()
	if name(first) != "a" || name(second) != "b" {
		t.Errorf("picked %s and %s", name(first), name(second))
	}
	again, err := p.g.Pick(t.Context(), request(func(r *http.Request) { r.AddCookie(second.Cookie(request())) }))
	if err != nil || name(again) != "b" {
		t.Errorf("the second client got %v, %v", again, err)
	}
}
