package upstream_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/errs"
	"github.com/culvert-go/culvert/upstream"
)

// A target that fails MaxFails times gets no request for FailTimeout, and then one.
// It gets further ones if that succeeds.
func TestFailTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPicks(t, upstream.Options{}, upstream.Target{Addr: "a:1", MaxFails: 2, FailTimeout: 5 * time.Second}, upstream.Target{Addr: "b:1"})
		for i, step := range []struct {
			broken bool
			after  time.Duration
			want   string
		}{
			{true, 0, "a b b a b b"},               // two failures, then out
			{true, 5 * time.Second, "b b b b b b"}, // not yet
			{true, time.Nanosecond, "b a b b b b"}, // one attempt in its turn, which fails
			{true, 4 * time.Second, "b b b b b b"},
			{false, 1*time.Second + time.Nanosecond, "b a b a b a"}, // recovered
		} {
			time.Sleep(step.after)
			p.broken["a"] = step.broken
			if got := p.send(6); got != step.want {
				t.Errorf("step %d: requests were sent to %q, want %q", i, got, step.want)
			}
		}
	})
}

// While the one attempt at a failing target runs, no other request is sent there.
func TestOneAttemptAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPicks(t, upstream.Options{Balance: upstream.First()}, addrs("a b")...)
		p.broken["a"] = true
		p.send(1)
		time.Sleep(10*time.Second + 1)
		attempt := p.lease()
		if name(attempt) != "a" {
			t.Fatalf("leased %s", name(attempt))
		}
		p.want("b b b")
		attempt.Done(upstream.Outcome{Status: 200})
		p.broken["a"] = false
		p.want("a a")
	})
}

func TestHealthRules(t *testing.T) {
	t.Run("MaxFails below 0 never takes a target out", func(t *testing.T) {
		p := newPicks(t, upstream.Options{}, upstream.Target{Addr: "a:1", MaxFails: -1}, upstream.Target{Addr: "b:1"})
		p.broken["a"] = true
		p.want("a b b a b b")
	})
	t.Run("nor is the only target", func(t *testing.T) {
		p := newPicks(t, upstream.Options{}, addrs("a")...)
		p.broken["a"] = true
		p.want("a a a")
	})
	t.Run("backups get the requests of failing targets", func(t *testing.T) {
		p := newPicks(t, upstream.Options{}, upstream.Target{Addr: "a:1"}, upstream.Target{Addr: "b:1", Backup: true})
		p.broken["a"] = true
		p.want("a b b b")
	})
	t.Run("with MaxEjected 1 and all failing there is none", func(t *testing.T) {
		p := newPicks(t, upstream.Options{MaxEjected: 1}, addrs("a b")...)
		p.broken["a"], p.broken["b"] = true, true
		p.want("a b - -")
		_, err := p.g.Pick(t.Context(), request())
		refused(t, err, culvert.NoTarget, "no healthy target is left")
	})
	t.Run("errors of the client don't count", func(t *testing.T) {
		p := newPicks(t, upstream.Options{}, addrs("a b")...)
		for range 4 {
			p.lease().Done(upstream.Outcome{Err: &culvert.Error{Kind: culvert.ClientGone}})
		}
		p.want("a b a b")
	})
}

// Statuses and slow responses count as failures if FailStatuses and FailLatency are set.
func TestPassiveRules(t *testing.T) {
	p := newPicks(t, upstream.Options{FailStatuses: []int{500, 503}}, addrs("a b")...)
	p.status["a"] = 503
	p.want("a b b b")

	p = newPicks(t, upstream.Options{FailLatency: time.Second}, addrs("a b")...)
	p.lease().Done(upstream.Outcome{Status: 200, TimeToHeader: time.Second})
	p.want("b b b")
}

// Only the kinds of errors in FailKinds count, nil stands for all that a target may have caused.
func TestFailKinds(t *testing.T) {
	kinds := map[string]error{
		"dial": &culvert.Error{Kind: culvert.DialFailed}, "timeout": &culvert.Error{Kind: culvert.Timeout},
		"wrapped": fmt.Errorf("outer: %w", &culvert.Error{Kind: culvert.DialFailed}),
		"gone":    &culvert.Error{Kind: culvert.ClientGone}, "ours": &culvert.Error{Kind: culvert.Internal},
		"unknown": &culvert.Error{Kind: culvert.Unknown}, "other": errors.New("broken"),
	}
	for _, test := range []struct {
		kinds []culvert.ErrorKind
		count string // in the order of their names
	}{
		{nil, "dial other timeout unknown wrapped"},
		{[]culvert.ErrorKind{}, ""},
		{[]culvert.ErrorKind{culvert.DialFailed}, "dial wrapped"},
		{[]culvert.ErrorKind{culvert.Timeout, culvert.Unknown}, "other timeout unknown"},
	} {
		var count []string
		for _, kind := range slices.Sorted(maps.Keys(kinds)) {
			p := newPicks(t, upstream.Options{FailKinds: test.kinds}, addrs("a b")...)
			p.lease().Done(upstream.Outcome{Err: kinds[kind]})
			if p.ejected() == "a" {
				count = append(count, kind)
			}
		}
		if got := strings.Join(count, " "); got != test.count {
			t.Errorf("FailKinds %v: %q count, want %q", test.kinds, got, test.count)
		}
	}
}

// An error that does not count does not bring a target back either.
func TestOtherKindsBringNothingBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPicks(t, upstream.Options{Balance: upstream.First(), FailKinds: []culvert.ErrorKind{culvert.DialFailed}}, addrs("a b")...)
		p.lease().Done(upstream.Outcome{Err: &culvert.Error{Kind: culvert.DialFailed}})
		for range 3 {
			p.want("b b")
			time.Sleep(10*time.Second + 1)
			probe := p.lease()
			if name(probe) != "a" {
				t.Fatalf("leased %s, want a", name(probe))
			}
			probe.Done(upstream.Outcome{Err: &culvert.Error{Kind: culvert.Timeout}})
		}
		time.Sleep(10*time.Second + 1)
		p.want("a a a")
	})
}

// The health of an address outlives the set that it was in (caddy#7037, #4792).
func TestHealthOutlivesTheSet(t *testing.T) {
	p := newPicks(t, upstream.Options{}, addrs("a b c")...)
	p.broken["a"] = true
	p.send(3)
	for _, list := range []string{"b c", "a b c"} {
		if err := p.g.Set(addrs(list)...); err != nil {
			t.Fatal(err)
		}
		p.want("b c b c")
	}
	held := p.lease()
	if err := p.g.Set(addrs("a c")...); err != nil {
		t.Fatal(err)
	}
	held.Done(upstream.Outcome{Status: 200})
	for s := range p.g.Targets() {
		if s.InFlight != 0 || s.Healthy != (s.Target.Addr == "c:1") {
			t.Errorf("%+v", s)
		}
	}
}

// The share of a target that has recovered grows with time.
func TestSlowStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPicks(t, upstream.Options{SlowStart: 100 * time.Second}, addrs("a b")...)
		p.broken["a"] = true
		p.send(1)
		p.broken["a"] = false
		time.Sleep(10*time.Second + 1)
		p.want("b b a") // its attempt, in the turn that nginx gives it after a failure
		share := func() int { return strings.Count(p.send(1000), "a") }
		if n := share(); n > 20 {
			t.Errorf("at first it got %d of 1000", n)
		}
		time.Sleep(50 * time.Second)
		if n := share(); n < 250 || n > 400 {
			t.Errorf("half way it got %d of 1000", n)
		}
		time.Sleep(50 * time.Second)
		if n := share(); n != 500 {
			t.Errorf("in the end it got %d of 1000", n)
		}
	})
}

// If all targets are in their slow start, all get requests.
func TestSlowStartOfAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPicks(t, upstream.Options{SlowStart: time.Hour}, addrs("a b")...)
		p.broken["a"], p.broken["b"] = true, true
		p.send(2)
		time.Sleep(10*time.Second + 1)
		p.broken["a"], p.broken["b"] = false, false
		if got := p.send(100); strings.Contains(got, "-") {
			t.Errorf("requests were sent to %q", got)
		}
	})
}

func TestMaxConnsWithoutQueue(t *testing.T) {
	p := newPicks(t, upstream.Options{RetryAfter: 3 * time.Second}, upstream.Target{Addr: "a:1", MaxConns: 1}, upstream.Target{Addr: "b:1", MaxConns: 2})
	var held []upstream.Lease
	got := ""
	for range 3 {
		held = append(held, p.lease())
		got += name(held[len(held)-1])
	}
	if got != "abb" {
		t.Errorf("leased %s", got)
	}
	_, err := p.g.Pick(t.Context(), request())
	refused(t, err, culvert.Busy, "every target has its MaxConns")
	if e := errs.As(err); e.RetryAfter != 3*time.Second {
		t.Errorf("RetryAfter %v", e.RetryAfter)
	}
	held[0].Done(upstream.Outcome{Status: 200})
	p.want("a a")
}

// Waiting requests get a target in FIFO order, and no request overtakes them.
func TestQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPicks(t, upstream.Options{Queue: 2}, upstream.Target{Addr: "a:1", MaxConns: 1})
		held := p.lease()
		served := make(chan int, 3)
		for i := range 2 {
			go func() {
				l := p.lease()
				served <- i
				time.Sleep(time.Second)
				l.Done(upstream.Outcome{Status: 200})
			}()
			synctest.Wait()
		}
		if n := p.g.Waiting(); n != 2 {
			t.Errorf("%d wait", n)
		}
		_, err := p.g.Pick(t.Context(), request())
		refused(t, err, culvert.Busy, "every target has its MaxConns")
		held.Done(upstream.Outcome{Status: 200})
		synctest.Wait()
		go func() {
			p.lease().Done(upstream.Outcome{Status: 200})
			served <- 2
		}()
		for want := range 3 {
			if got := <-served; got != want {
				t.Errorf("served %d, want %d", got, want)
			}
		}
		synctest.Wait()
		if p.g.Waiting() != 0 || p.g.InFlight() != 0 {
			t.Errorf("%d wait, %d in flight", p.g.Waiting(), p.g.InFlight())
		}
	})
}

func TestQueueTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPicks(t, upstream.Options{Queue: 2, QueueTimeout: 5 * time.Second}, upstream.Target{Addr: "a:1", MaxConns: 1})
		held := p.lease()
		start := time.Now()
		_, err := p.g.Pick(t.Context(), request())
		refused(t, err, culvert.Busy, "no target became free in time")
		if waited := time.Since(start); waited != 5*time.Second {
			t.Errorf("waited %v", waited)
		}
		held.Done(upstream.Outcome{Status: 200})
		p.want("a a")
	})
}

// No request waits for a target that has failed, even if it fails during the wait.
func TestQueueOfFailing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPicks(t, upstream.Options{Queue: 2, MaxEjected: 1}, upstream.Target{Addr: "a:1", MaxConns: 1}, upstream.Target{Addr: "b:1", Down: true})
		held := p.lease()
		failed := make(chan error)
		go func() {
			_, err := p.g.Pick(t.Context(), request())
			failed <- err
		}()
		synctest.Wait()
		held.Done(upstream.Outcome{Err: errors.New("broken")})
		refused(t, <-failed, culvert.NoTarget, "no healthy target is left")
	})
}

func TestMaxInFlight(t *testing.T) {
	p := newPicks(t, upstream.Options{MaxInFlight: 2}, addrs("a b")...)
	a, b := p.lease(), p.lease()
	_, err := p.g.Pick(t.Context(), request())
	refused(t, err, culvert.Busy, "too many requests in flight")
	a.Done(upstream.Outcome{Status: 200})
	p.want("a")
	b.Done(upstream.Outcome{Status: 200})
}

func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPicks(t, upstream.Options{}, addrs("a b")...)
		held := p.lease()
		drained := make(chan error, 1)
		go func() { drained <- p.g.Drain(t.Context()) }()
		synctest.Wait()
		_, err := p.g.Pick(t.Context(), request())
		refused(t, err, culvert.Busy, "draining")
		select {
		case err := <-drained:
			t.Fatalf("drained with a request in flight: %v", err)
		default:
		}
		held.Done(upstream.Outcome{Status: 200})
		if err := <-drained; err != nil {
			t.Error(err)
		}
		if err := p.g.Drain(t.Context()); err != nil {
			t.Errorf("a second drain: %v", err)
		}
	})
}
